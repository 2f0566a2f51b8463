-- Dead events counted by sink, topic and reason; the largest groups first.
--
-- Called by: OutboxAdmin.dead_groups.
-- Index:     dead_event_group_idx: one probe for each group, then up to 10,000 letters of it.
CREATE OR REPLACE FUNCTION livewell.group_dead_events(p_limit integer)
RETURNS TABLE (
    sink text, topic text, reason text, n bigint, is_more boolean, parks bigint,
    first_at timestamptz, last_at timestamptz, detail text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.name, g.topic, g.reason, least(c.n, 10000), c.n > 10000, c.parks, c.first_at,
        c.last_at, l.detail
    FROM livewell.walk_dead_groups() g
    JOIN livewell.event_sink s ON s.id = g.sink
    CROSS JOIN LATERAL (
        SELECT count(*) AS n, count(*) FILTER (WHERE o.parks) AS parks, min(o.died_at) AS first_at,
            max(o.died_at) AS last_at
        FROM (
            SELECT d.parks, d.died_at FROM livewell.dead_event d
            WHERE d.sink = g.sink AND d.topic = g.topic AND d.reason = g.reason
            ORDER BY d.number DESC LIMIT 10001
        ) o
    ) c
    CROSS JOIN LATERAL (
        SELECT d.detail FROM livewell.dead_event d
        WHERE d.sink = g.sink AND d.topic = g.topic AND d.reason = g.reason
        ORDER BY d.number DESC LIMIT 1
    ) l
    ORDER BY c.n DESC, s.name, g.topic, g.reason LIMIT least(greatest(p_limit, 1), 100);
END
$$;
COMMENT ON FUNCTION livewell.group_dead_events IS
    'Dead events by sink, topic and reason, with the detail of the latest of each group.';
REVOKE ALL ON FUNCTION livewell.group_dead_events FROM PUBLIC;
