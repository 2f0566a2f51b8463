-- Why no worker could take a job, whatever else holds it up: nobody works its queue, has its task,
-- or has a credential of its limiter. NULL: somebody could.
--
-- Called by: why_job, with its planner settings. A table of a few rows.
CREATE OR REPLACE FUNCTION livewell.why_unworked(
    p_job livewell.job,
    p_limiter livewell.limiter,
    p_now timestamptz,
    OUT reason text,
    OUT name text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (
        SELECT FROM livewell.worker w
        WHERE livewell.works_queue(w.queues, p_job.queue) AND w.expires_at > p_now
    ) THEN
        reason := 'no_worker';
        name := p_job.queue;
    ELSIF NOT EXISTS (
        SELECT FROM livewell.worker w
        WHERE livewell.works_queue(w.queues, p_job.queue)
            AND p_job.kind = ANY (w.kinds)
            AND w.expires_at > p_now
    ) THEN
        reason := 'no_task';
        name := p_job.kind;
    ELSIF p_limiter.name IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM livewell.worker w
            JOIN livewell.limiter_credential c
                ON c.limiter = p_limiter.name
                    AND c.active
                    AND p_limiter.name || ' ' || c.name <> ALL (w.lacks)
            WHERE livewell.works_queue(w.queues, p_job.queue)
                AND p_job.kind = ANY (w.kinds)
                AND w.expires_at > p_now
        )
    THEN
        reason := 'no_credential';
        name := p_limiter.name;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.why_unworked IS
    'Why no living worker could take a job; NULL if one could.';
REVOKE ALL ON FUNCTION livewell.why_unworked FROM PUBLIC;
