-- Add what a worker counted since its last report.
--
-- Called by: worker, every 10 s. Rows in key order, so two workers that add to the same minute do
--            not deadlock.
CREATE OR REPLACE FUNCTION livewell.add_stats(
    p_queues text[], p_kinds text[], p_outcomes text[], p_ns bigint[], p_ms bigint[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_minute timestamptz := date_trunc('minute', livewell.now());
BEGIN
    INSERT INTO livewell.stat AS s (minute, queue, kind, outcome, n, ms)
    SELECT v_minute, g.queue, g.kind, g.outcome, g.n, g.ms
    FROM unnest(p_queues, p_kinds, p_outcomes, p_ns, p_ms) AS g (queue, kind, outcome, n, ms)
    ORDER BY g.queue COLLATE "C", g.kind COLLATE "C", g.outcome COLLATE "C"
    ON CONFLICT (minute, queue, kind, outcome)
    DO UPDATE SET n = s.n + excluded.n, ms = s.ms + excluded.ms;
END
$$;
COMMENT ON FUNCTION livewell.add_stats IS 'Adds counts and milliseconds to the current minute.';
REVOKE ALL ON FUNCTION livewell.add_stats FROM PUBLIC;
