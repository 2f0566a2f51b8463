-- Lock the first job, in the given order of queues, that was held by a worker when that died: it
-- runs alone. Nothing, if there is none that may run.
--
-- Called by: claim_jobs, for an empty worker, if there is a suspect in any of the queues. The
--            planner settings are those of claim_jobs.
-- Index:     job_suspect_idx.
CREATE OR REPLACE FUNCTION livewell.lock_suspect(p_queues text[])
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_found bigint[] := '{}';
    v_queue text;
BEGIN
    FOREACH v_queue IN ARRAY p_queues LOOP
        CONTINUE WHEN NOT EXISTS (
            SELECT FROM livewell.queue q
            WHERE q.name = v_queue
                AND q.paused_at IS NULL
                AND q.concurrency IS NULL
                AND q.group_limit IS NULL
                AND q.limiter IS NULL
        );
        v_found := ARRAY(
            SELECT s.id FROM livewell.job s
            WHERE s.queue = v_queue AND s.state = 'ready' AND s.lost > 0
            ORDER BY s.lane, s.rank, s.id LIMIT 1 FOR UPDATE SKIP LOCKED
        );
        EXIT WHEN cardinality(v_found) > 0;
    END LOOP;
    RETURN v_found;
END
$$;
COMMENT ON FUNCTION livewell.lock_suspect IS
    'Locks and returns the first job that was lost with a worker.';
REVOKE ALL ON FUNCTION livewell.lock_suspect FROM PUBLIC;
