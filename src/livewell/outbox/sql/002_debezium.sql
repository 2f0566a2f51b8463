-- Events under the names that the outbox router of Debezium uses.

CREATE VIEW livewell.outbox_debezium WITH (security_invoker = true) AS
SELECT
    s.install || '-' || e.number AS id,
    -- What the router makes a topic of: orders.created and orders.paid go to one, and keep the order
    -- of their key there.
    regexp_replace(e.topic, '[.][^.]*$', '') AS aggregatetype,
    e.key AS aggregateid,
    e.topic AS type,
    e.payload,
    e.tenant,
    e.created_at
FROM livewell.event e
CROSS JOIN livewell.event_source s;
COMMENT ON VIEW livewell.outbox_debezium IS
    'Events with the columns of Debezium''s outbox router: for connectors that read a query.';
