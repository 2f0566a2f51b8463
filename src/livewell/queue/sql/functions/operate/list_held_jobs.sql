-- What a worker incarnation runs now, the longest first.
--
-- Called by: the page of a worker.
-- Index:     job_worker_idx. A worker holds no more jobs than it has slots, and a thousand at most
--            are read.
CREATE OR REPLACE FUNCTION livewell.list_held_jobs(p_worker bigint, p_limit integer)
RETURNS TABLE (
    id bigint, queue text, kind text, attempt smallint, max_attempts smallint, progress smallint,
    progress_note text, started_at timestamptz, deadline_at timestamptz
)
LANGUAGE sql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
    SELECT h.id, h.queue, h.kind, h.attempt, h.max_attempts, h.progress, h.progress_note,
        h.started_at, h.deadline_at
    FROM (
        SELECT j.* FROM livewell.job j
        WHERE j.state = 'running' AND j.worker = p_worker
        LIMIT 1000
    ) h
    ORDER BY h.started_at, h.id LIMIT least(greatest(p_limit, 1), 1000)
$$;
COMMENT ON FUNCTION livewell.list_held_jobs IS 'The jobs that one worker runs now.';
REVOKE ALL ON FUNCTION livewell.list_held_jobs FROM PUBLIC;
