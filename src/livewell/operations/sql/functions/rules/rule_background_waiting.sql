-- Rule background_waiting (P2): a job in the background lane has been ready for more than an hour.
--
-- Called by: evaluate_rule. Index: job_ready_idx.
-- Of each queue the 100 jobs are looked at that are next in line: without priorities the first is
-- the oldest. A paused queue waits because somebody said so.
CREATE OR REPLACE FUNCTION livewell.rule_background_waiting(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT q.name,
        format(
            'queue %s: a background job has been waiting for %s min', q.name,
            floor(extract(epoch FROM p_now - o.oldest) / 60)
        )
    FROM livewell.queue q
    CROSS JOIN LATERAL (
        SELECT min(n.run_at) AS oldest
        FROM (
            SELECT j.run_at FROM livewell.job j
            WHERE j.queue = q.name AND j.lane = 1 AND j.state = 'ready' AND j.lost = 0
            ORDER BY j.rank, j.id LIMIT 100
        ) n
    ) o
    WHERE q.paused_at IS NULL AND o.oldest < p_now - interval '1 hour';
END
$$;
COMMENT ON FUNCTION livewell.rule_background_waiting IS
    'Queues whose background lane has been waiting for more than an hour.';
REVOKE ALL ON FUNCTION livewell.rule_background_waiting FROM PUBLIC;
