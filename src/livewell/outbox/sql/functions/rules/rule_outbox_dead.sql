-- Rule outbox_dead (P2): events became dead letters of a sink within the last hour: they grow.
--
-- Called by: evaluate_rule. Index: dead_event_died_idx; the newest 10,000 are read.
-- Older ones are known: one alert says that they came, and the doctor and the state still count
-- them.
CREATE OR REPLACE FUNCTION livewell.rule_outbox_dead(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.name::text,
        format(
            'sink %s: %s%s became dead letters within an hour, the last one (%s) with: %s', s.name,
            d.n, CASE WHEN d.n = 1 THEN ' event' ELSE ' events' END, d.reason,
            coalesce(left(d.detail, 200), 'no text')
        )
    FROM (
        SELECT x.sink, count(*) AS n, (array_agg(x.reason ORDER BY x.died_at DESC))[1] AS reason,
            (array_agg(x.detail ORDER BY x.died_at DESC))[1] AS detail
        FROM (
            SELECT o.sink, o.reason, o.detail, o.died_at FROM livewell.dead_event o
            WHERE o.died_at > p_now - interval '1 hour'
            ORDER BY o.died_at DESC LIMIT 10000
        ) x
        GROUP BY x.sink
    ) d
    JOIN livewell.event_sink s ON s.id = d.sink;
END
$$;
COMMENT ON FUNCTION livewell.rule_outbox_dead IS
    'Sinks of which events became dead letters within the last hour.';
REVOKE ALL ON FUNCTION livewell.rule_outbox_dead FROM PUBLIC;
