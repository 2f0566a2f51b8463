-- Why a live job is not in line at all: it runs, waits behind another job with its key or for its
-- time, or its queue is paused. NULL: it is in line.
--
-- Called by: why_job, with its planner settings. Index: worker_pkey, job_unique_key_idx.
CREATE OR REPLACE FUNCTION livewell.why_apart(
    p_job livewell.job,
    p_queue livewell.queue,
    p_now timestamptz,
    OUT reason text,
    OUT other_id bigint,
    OUT name text,
    OUT since timestamptz,
    OUT wait_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    IF p_job.state = 'running' THEN
        reason := 'running';
        name := (SELECT w.name FROM livewell.worker w WHERE w.id = p_job.worker);
        since := p_job.started_at;
    ELSIF p_job.held_by = 'k' THEN
        reason := 'held_key';
        other_id := (
            SELECT c.id FROM livewell.job c
            WHERE c.queue = p_job.queue
                AND c.unique_key = p_job.unique_key
                AND c.held_by IS DISTINCT FROM 'k'
        );
        name := p_job.unique_key;
        since := p_job.created_at;
    ELSIF p_job.state = 'delayed' AND p_job.run_at > p_now THEN
        reason := 'delayed';
        name := p_job.last_error;
        since := p_job.run_at;
        wait_seconds := extract(epoch FROM p_job.run_at - p_now);
    ELSIF p_queue.paused_at IS NOT NULL THEN
        reason := 'paused';
        name := p_job.queue;
        since := p_queue.paused_at;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.why_apart IS
    'Why a live job is not in line: it runs, is held behind its key, delayed, or its queue is '
    'paused; NULL if it is in line.';
REVOKE ALL ON FUNCTION livewell.why_apart FROM PUBLIC;
