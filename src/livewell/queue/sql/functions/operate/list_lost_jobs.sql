-- Jobs that were taken back because this worker incarnation died or froze while it held them, the
-- latest first. A worker that lives has lost none: it is buried first.
--
-- Called by: the page of a worker.
-- Index:     job_failure_lost_idx, backwards. Kept as long as dead letters are, and of each job the
--            last twenty failures.
CREATE OR REPLACE FUNCTION livewell.list_lost_jobs(p_worker bigint, p_limit integer)
RETURNS TABLE (job_id bigint, attempt smallint, failed_at timestamptz)
LANGUAGE sql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
    SELECT f.job_id, f.attempt, f.failed_at FROM livewell.job_failure f
    WHERE f.worker = p_worker AND f.outcome = 'lost'
    ORDER BY f.failed_at DESC LIMIT least(greatest(p_limit, 1), 1000)
$$;
COMMENT ON FUNCTION livewell.list_lost_jobs IS 'The jobs that were lost with one worker.';
REVOKE ALL ON FUNCTION livewell.list_lost_jobs FROM PUBLIC;
