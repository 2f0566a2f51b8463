-- How many jobs run, by queue and worker, as a JSON array of [queue, worker, jobs].
--
-- Called by: state_queue, find_queues. Bounded by the slots of the fleet, and by 100,000.
-- Index:     job_worker_idx.
CREATE OR REPLACE FUNCTION livewell.count_running()
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_array(r.queue, r.worker, r.n)), '[]')
    FROM (
        SELECT x.queue, x.worker, count(*) AS n
        FROM (
            SELECT j.queue, j.worker FROM livewell.job j
            WHERE j.state = 'running' AND j.worker > 0
            LIMIT 100000
        ) x
        GROUP BY x.queue, x.worker
    ) r
$$;
COMMENT ON FUNCTION livewell.count_running IS 'Running jobs by queue and worker.';
REVOKE ALL ON FUNCTION livewell.count_running FROM PUBLIC;
