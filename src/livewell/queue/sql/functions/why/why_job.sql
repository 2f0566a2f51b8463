-- Why is this job not running? One answer, the first that applies, in the order in which they would
-- have to be overcome (Q15).
--
-- Called by: why_refresh; `livewell jobs why`, clients.
-- Answer:    reason, what it waits for in numbers and names, and the seconds until it is worth
--            looking again where that is known. Reasons:
--                succeeded, cancelled, dead, unknown (why_ended)
--                    it is not waiting
--                running, held_key, delayed, paused (why_apart)
--                    it is not in line: it runs; behind job other_id; until its time; the queue is
--                    paused, since
--                no_worker, no_task, no_credential (why_unworked)
--                    nobody works the queue; somebody does, but none of them has the task, or a
--                    credential of its limiter
--                held_group, key_limit, suspect, queue_limit, concurrency (why_full)
--                    n run, of so many: in its group, with its key under the limiter, in the queue,
--                    under the limiter; suspect: it was lost with a worker and waits for an empty
--                    one
--                rate, budget, breaker, probe, upstream, restart (why_limited)
--                    what the limiter says, for the credential that is free first
--                behind
--                    n others of its queue go first
--                next
--                    nothing: a worker should take it within its poll interval
-- It looks at what a claim would look at, without locks: the answer is about this moment.
CREATE OR REPLACE FUNCTION livewell.why_job(p_id bigint)
RETURNS TABLE (
    reason text, n bigint, of_limit bigint, other_id bigint, name text, since timestamptz,
    wait_seconds float8
)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_job       livewell.job;
    v_queue     livewell.queue;
    v_limiter   livewell.limiter;
    v_running   text[];
BEGIN
    SELECT * INTO v_job FROM livewell.job j WHERE j.id = p_id;
    IF NOT FOUND THEN
        SELECT e.reason, e.name, e.since INTO reason, name, since FROM livewell.why_ended(p_id) e;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO v_queue FROM livewell.queue q WHERE q.name = v_job.queue;
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = v_queue.limiter;
    v_running := CASE
        WHEN v_limiter.name IS NULL THEN ARRAY[v_job.queue]
        ELSE ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = v_limiter.name) END;

    SELECT a.reason, a.other_id, a.name, a.since, a.wait_seconds
    INTO reason, other_id, name, since, wait_seconds
    FROM livewell.why_apart(v_job, v_queue, v_now) a;
    IF reason IS NULL THEN
        SELECT w.reason, w.name INTO reason, name
        FROM livewell.why_unworked(v_job, v_limiter, v_now) w;
    END IF;
    IF reason IS NULL THEN
        SELECT f.reason, f.n, f.of_limit, f.other_id, f.name
        INTO reason, n, of_limit, other_id, name
        FROM livewell.why_full(v_job, v_queue, v_limiter, v_running) f;
    END IF;
    IF reason IS NULL AND v_limiter.name IS NOT NULL THEN
        SELECT l.reason, l.wait_seconds INTO reason, wait_seconds
        FROM livewell.why_limited(v_job, v_limiter, v_running, v_now) l;
        IF reason IS NOT NULL THEN
            name := v_limiter.name;
            since := v_now + wait_seconds * interval '1 second';
        END IF;
    END IF;
    IF reason IS NULL THEN
        n := (
            SELECT count(*)
            FROM (
                SELECT FROM livewell.job j
                WHERE j.queue = v_job.queue
                    AND j.state = 'ready'
                    AND j.lost = 0
                    AND (j.lane, j.rank, j.id) < (v_job.lane, v_job.rank, v_job.id)
                LIMIT 1000000
            ) b
        );
        reason := CASE WHEN n > 0 THEN 'behind' ELSE 'next' END;
        name := v_job.queue;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.why_job IS
    'Why a job is not running: the first thing that stands in its way.';
REVOKE ALL ON FUNCTION livewell.why_job FROM PUBLIC;
