-- Which place a job waits for: in its group, with its key under the limiter, in an empty worker, in
-- its queue, under the limiter. NULL: there is room everywhere.
--
-- Called by: why_job, with its planner settings. Index: job_group_idx, job_limited_idx.
-- p_running: the queues that share the limiter.
CREATE OR REPLACE FUNCTION livewell.why_full(
    p_job livewell.job,
    p_queue livewell.queue,
    p_limiter livewell.limiter,
    p_running text[],
    OUT reason text,
    OUT n bigint,
    OUT of_limit bigint,
    OUT other_id bigint,
    OUT name text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_in_group      bigint;
    v_with_key      bigint;
    v_in_queue      bigint;
    v_calls         bigint;
BEGIN
    IF p_job.group_key IS NOT NULL THEN
        SELECT count(*) FILTER (WHERE j.queue = p_job.queue), count(*) INTO v_in_group, v_with_key
        FROM livewell.job j
        WHERE j.queue = ANY (p_running) AND j.group_key = p_job.group_key AND j.state = 'running';
        IF v_in_group >= p_queue.group_limit THEN
            reason := 'held_group';
            n := v_in_group;
            of_limit := p_queue.group_limit;
            other_id := (
                SELECT j.id FROM livewell.job j
                WHERE j.queue = p_job.queue
                    AND j.group_key = p_job.group_key
                    AND j.state = 'running'
                ORDER BY j.rank, j.id LIMIT 1
            );
            name := p_job.group_key;
            RETURN;
        END IF;
        IF v_with_key >= p_limiter.per_key THEN
            reason := 'key_limit';
            n := v_with_key;
            of_limit := p_limiter.per_key;
            other_id := (
                SELECT j.id FROM livewell.job j
                WHERE j.queue = ANY (p_running)
                    AND j.group_key = p_job.group_key
                    AND j.state = 'running'
                ORDER BY j.rank, j.id LIMIT 1
            );
            name := p_job.group_key;
            RETURN;
        END IF;
    END IF;
    IF p_job.lost > 0 THEN
        reason := 'suspect';
        n := p_job.lost;
        of_limit := p_queue.lost_max;
        RETURN;
    END IF;
    SELECT count(*) FILTER (WHERE j.queue = p_job.queue),
        count(DISTINCT (j.worker, j.call_fence))
    INTO v_in_queue, v_calls
    FROM livewell.job j
    WHERE j.queue = ANY (p_running) AND j.credential IS NOT NULL;
    IF v_in_queue >= p_queue.concurrency THEN
        reason := 'queue_limit';
        n := v_in_queue;
        of_limit := p_queue.concurrency;
        name := p_job.queue;
    ELSIF v_calls >= p_limiter.concurrency THEN
        reason := 'concurrency';
        n := v_calls;
        of_limit := p_limiter.concurrency;
        name := p_limiter.name;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.why_full IS
    'Which limit on what runs at once a job waits for; NULL if there is room.';
REVOKE ALL ON FUNCTION livewell.why_full FROM PUBLIC;
