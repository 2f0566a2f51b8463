-- The groups of dead events: sink, topic and reason, without counting anything.
--
-- Called by: group_dead_events, list_dead_events.
-- Index:     dead_event_group_idx, one probe for each group; at most 1,000.
CREATE OR REPLACE FUNCTION livewell.walk_dead_groups()
RETURNS TABLE (sink smallint, topic text, reason text)
LANGUAGE sql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
    WITH RECURSIVE walk (sink, topic, reason, steps) AS (
        (
            SELECT d.sink, d.topic, d.reason, 1 FROM livewell.dead_event d
            ORDER BY d.sink, d.topic, d.reason LIMIT 1
        )
        UNION ALL
        SELECT n.sink, n.topic, n.reason, w.steps + 1
        FROM walk w
        CROSS JOIN LATERAL (
            SELECT d.sink, d.topic, d.reason FROM livewell.dead_event d
            WHERE (d.sink, d.topic, d.reason) > (w.sink, w.topic, w.reason)
            ORDER BY d.sink, d.topic, d.reason LIMIT 1
        ) n
        WHERE w.steps < 1000
    )
    SELECT w.sink, w.topic, w.reason FROM walk w
$$;
COMMENT ON FUNCTION livewell.walk_dead_groups IS 'Sink, topic and reason of every group of dead events.';
REVOKE ALL ON FUNCTION livewell.walk_dead_groups FROM PUBLIC;
