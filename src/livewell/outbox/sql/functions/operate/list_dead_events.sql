-- A page of dead events by number and sink; keyset.
--
-- Called by: OutboxAdmin.dead.
-- Index:     dead_event_group_idx: up to p_limit letters of every group that matches.
-- p_after, p_after_sink: number and sink of the last letter of the page before.
CREATE OR REPLACE FUNCTION livewell.list_dead_events(
    p_sink text, p_topic text, p_reason text, p_after bigint, p_after_sink text, p_limit integer
)
RETURNS TABLE (
    number bigint, id text, sink text, topic text, tenant text, key text, reason text, detail text,
    attempt smallint, lost smallint, parks boolean, replay boolean, created_at timestamptz,
    died_at timestamptz
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_limit CONSTANT integer := least(greatest(p_limit, 1), 100);
    v_after CONSTANT bigint := coalesce(p_after, 0);
BEGIN
    RETURN QUERY
    SELECT f.number, livewell.event_id(f.number), f.name, f.topic, e.tenant, e.key, f.reason,
        f.detail, f.attempt, f.lost, f.parks, f.replay, e.created_at, f.died_at
    FROM (
        SELECT d.*, s.name
        FROM livewell.walk_dead_groups() g
        JOIN livewell.event_sink s ON s.id = g.sink
        CROSS JOIN LATERAL (
            SELECT d.* FROM livewell.dead_event d
            WHERE d.sink = g.sink
                AND d.topic = g.topic
                AND d.reason = g.reason
                AND d.number >= v_after
                AND (d.number > v_after OR s.name > p_after_sink)
            ORDER BY d.number LIMIT v_limit
        ) d
        WHERE (p_sink IS NULL OR s.name = p_sink)
            AND (p_topic IS NULL OR g.topic = p_topic)
            AND (p_reason IS NULL OR g.reason = p_reason)
        ORDER BY d.number, s.name LIMIT v_limit
    ) f
    JOIN livewell.event e ON e.number = f.number AND e.day = f.day
    ORDER BY f.number, f.name;
END
$$;
COMMENT ON FUNCTION livewell.list_dead_events IS
    'A page of dead events after a given number and sink.';
REVOKE ALL ON FUNCTION livewell.list_dead_events FROM PUBLIC;
