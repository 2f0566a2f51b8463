-- One event as it was emitted; no row if there is none with that id.
--
-- Called by: OutboxAdmin.event; why_event.
-- p_id:      the id that receivers see, or its number.
-- Index:     event_pkey, one probe for each day that is kept.
CREATE OR REPLACE FUNCTION livewell.show_event(p_id text)
RETURNS TABLE (
    number bigint, id text, source text, topic text, tenant text, key text,
    created_at timestamptz, day date, trace text, payload text
)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT e.number, livewell.event_id(e.number), s.source, e.topic, e.tenant, e.key, e.created_at,
        e.day, e.trace, e.payload::text
    FROM livewell.event e
    CROSS JOIN livewell.event_source s
    WHERE e.number = livewell.event_number(p_id)
$$;
COMMENT ON FUNCTION livewell.show_event IS 'One event as it was emitted, by its id.';
REVOKE ALL ON FUNCTION livewell.show_event FROM PUBLIC;
