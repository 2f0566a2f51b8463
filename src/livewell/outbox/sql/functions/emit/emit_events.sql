-- Emit many events in the caller's transaction, in this order: one statement, four arrays.
--
-- Called by: Emit.many (app.emit.many). As emit_event, for each; all or none.
CREATE OR REPLACE FUNCTION livewell.emit_events(
    p_topics text[], p_payloads text[], p_keys text[], p_tenants text[], p_trace text DEFAULT NULL
)
RETURNS text[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_day       date;
    v_install   text;
    v_writer    xid8;
    v_numbers   bigint[];
BEGIN
    IF (cardinality(p_payloads), cardinality(p_keys), cardinality(p_tenants)) IS DISTINCT FROM
        (cardinality(p_topics), cardinality(p_topics), cardinality(p_topics))
    THEN
        RAISE EXCEPTION 'emit_events: there are % topics, % payloads, % keys and % tenants; give one '
            'of each for every event (NULL for no key)', cardinality(p_topics),
            cardinality(p_payloads), cardinality(p_keys), cardinality(p_tenants)
            USING ERRCODE = 'LW003';
    END IF;
    PERFORM livewell.refuse_event(e.topic, e.payload::json, e.key, coalesce(e.tenant, ''), p_trace)
    FROM unnest(p_topics, p_payloads, p_keys, p_tenants) AS e (topic, payload, key, tenant)
    LEFT JOIN livewell.event_topic t ON t.name = e.topic
    WHERE t.name IS NULL
        OR e.payload IS NULL
        OR octet_length(e.payload) > t.payload_bytes_max
        OR octet_length(e.key) > 512
        OR octet_length(e.tenant) > 200
        OR octet_length(p_trace) > 200
        OR strpos(e.payload, '\u') > 0;
    IF pg_catalog.pg_sequence_last_value('livewell.event_timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_event_numbers();    -- a failover
    END IF;
    v_now := livewell.now();
    v_day := (v_now AT TIME ZONE 'UTC')::date;
    v_writer := pg_current_xact_id();       -- before numbers are drawn: move_mark
    v_numbers := ARRAY(
        SELECT nextval('livewell.event_number_seq') FROM generate_series(1, cardinality(p_topics))
    );
    WITH given AS (
        SELECT e.number, e.topic, coalesce(e.tenant, '') AS tenant, e.key, e.payload
        FROM unnest(v_numbers, p_topics, p_payloads, p_keys, p_tenants)
            AS e (number, topic, payload, key, tenant)
    ), kept AS (
        INSERT INTO livewell.event (number, created_at, day, topic, tenant, key, payload, trace)
        SELECT g.number, v_now, v_day, g.topic, g.tenant, g.key, g.payload::json, p_trace
        FROM given g
    )
    INSERT INTO livewell.event_delivery (number, key_hash, day, tenant_hash, sink, shard)
    SELECT o.number, o.key_hash, v_day, o.tenant_hash, o.sink, o.key_hash & 63
    FROM (
        SELECT g.number, hashtext(g.tenant) AS tenant_hash, r.sink,
            CASE WHEN s.ordered AND g.key IS NOT NULL
                THEN hashtextextended(g.key, hashtextextended(g.tenant, 0)) ELSE g.number
            END AS key_hash
        FROM given g
        JOIN livewell.event_route r ON r.topic = g.topic
        JOIN livewell.event_sink s ON s.id = r.sink
    ) o;
    SELECT s.install INTO v_install FROM livewell.event_source s;
    RETURN ARRAY(SELECT v_install || '-' || n FROM unnest(v_numbers) AS n);
END
$$;
COMMENT ON FUNCTION livewell.emit_events IS
    'Emits many events in the caller''s transaction, in order; answers their ids.';
REVOKE ALL ON FUNCTION livewell.emit_events FROM PUBLIC;
