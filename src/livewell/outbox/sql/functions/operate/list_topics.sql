-- A page of topics by name, with the sinks that take each.
--
-- Called by: OutboxAdmin.topics.
CREATE OR REPLACE FUNCTION livewell.list_topics(p_after text, p_limit integer)
RETURNS TABLE (
    name text, on_dead text, payload_bytes_max integer, created_at timestamptz, sinks text[]
)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT t.name, t.on_dead, t.payload_bytes_max, t.created_at, ARRAY(
        SELECT s.name::text FROM livewell.event_route r
        JOIN livewell.event_sink s ON s.id = r.sink
        WHERE r.topic = t.name ORDER BY s.name LIMIT 100
    )
    FROM livewell.event_topic t
    WHERE t.name > coalesce(p_after, '')
    ORDER BY t.name LIMIT least(greatest(p_limit, 1), 100)
$$;
COMMENT ON FUNCTION livewell.list_topics IS 'A page of topics, with the sinks that take each.';
REVOKE ALL ON FUNCTION livewell.list_topics FROM PUBLIC;
