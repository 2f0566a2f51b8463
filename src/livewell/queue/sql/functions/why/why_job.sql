-- Why is this job not running? One answer, the first that applies, in the order in which they would
-- have to be overcome (Q15).
--
-- Called by: `livewell jobs why`, clients.
-- Answer:    reason, what it waits for in numbers and names, and the seconds until it is worth
--            looking again where that is known. Reasons:
--                running, succeeded, cancelled, dead, unknown              it is not waiting
--                delayed                                                   until its time
--                held_key, held_group behind job other_id; its group runs n of limit
--                paused                                                    the queue, since
--                no_worker, no_task, no_credential nobody works the queue; somebody does, but none
--                of them has the task, or a credential of its limiter
--                suspect it was lost with a worker and waits for an empty one
--                queue_limit, concurrency, key_limit n run, of so many: in the queue, under the
--                limiter, with its key under the limiter
--                rate, budget, breaker, probe, upstream, restart what the limiter says, for the
--                credential that is free first
--                behind n others of its queue go first
--                next nothing: a worker should take it within its poll interval
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
    v_n         bigint;
    v_room      record;
BEGIN
    SELECT * INTO v_job FROM livewell.job j WHERE j.id = p_id;
    IF NOT FOUND THEN
        RETURN QUERY
        SELECT x.reason, NULL::bigint, NULL::bigint, NULL::bigint, x.name, x.since, NULL::float8
        FROM (
            SELECT 'dead' AS reason, d.reason AS name, d.died_at AS since FROM livewell.dead_job d
            WHERE d.id = p_id
            UNION ALL
            SELECT h.outcome::text, nullif(h.note, ''), h.finished_at FROM livewell.job_history h
            WHERE h.id = p_id
            UNION ALL
            SELECT 'unknown', NULL, NULL
            LIMIT 1
        ) x;
        RETURN;
    END IF;
    SELECT * INTO v_queue FROM livewell.queue q WHERE q.name = v_job.queue;
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = v_queue.limiter;
    v_running := CASE
        WHEN v_limiter.name IS NULL THEN ARRAY[v_job.queue]
        ELSE ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = v_limiter.name) END;

    IF v_job.state = 'running' THEN
        RETURN QUERY
        SELECT 'running', NULL::bigint, NULL::bigint, NULL::bigint,
            (SELECT w.name FROM livewell.worker w WHERE w.id = v_job.worker), v_job.started_at,
            NULL::float8;
        RETURN;
    END IF;
    IF v_job.held_by = 'k' THEN
        RETURN QUERY
        SELECT 'held_key', NULL::bigint, NULL::bigint,
            (
                SELECT c.id FROM livewell.job c
                WHERE c.queue = v_job.queue
                    AND c.unique_key = v_job.unique_key
                    AND c.held_by IS DISTINCT FROM 'k'
            ),
            v_job.unique_key, v_job.created_at, NULL::float8;
        RETURN;
    END IF;
    IF v_job.state = 'delayed' AND v_job.run_at > v_now THEN
        RETURN QUERY
        SELECT 'delayed', NULL::bigint, NULL::bigint, NULL::bigint, v_job.last_error, v_job.run_at,
            extract(epoch FROM v_job.run_at - v_now)::float8;
        RETURN;
    END IF;
    IF v_queue.paused_at IS NOT NULL THEN
        RETURN QUERY
        SELECT 'paused', NULL::bigint, NULL::bigint, NULL::bigint, v_job.queue, v_queue.paused_at,
            NULL::float8;
        RETURN;
    END IF;
    IF NOT EXISTS (
        SELECT FROM livewell.worker w
        WHERE livewell.works_queue(w.queues, v_job.queue) AND w.expires_at > v_now
    ) THEN
        RETURN QUERY
        SELECT 'no_worker', NULL::bigint, NULL::bigint, NULL::bigint, v_job.queue,
            NULL::timestamptz, NULL::float8;
        RETURN;
    END IF;
    IF NOT EXISTS (
        SELECT FROM livewell.worker w
        WHERE livewell.works_queue(w.queues, v_job.queue)
            AND v_job.kind = ANY (w.kinds)
            AND w.expires_at > v_now
    ) THEN
        RETURN QUERY
        SELECT 'no_task', NULL::bigint, NULL::bigint, NULL::bigint, v_job.kind, NULL::timestamptz,
            NULL::float8;
        RETURN;
    END IF;
    IF v_limiter.name IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM livewell.worker w
            JOIN livewell.limiter_credential c
                ON c.limiter = v_limiter.name
                    AND c.active
                    AND v_limiter.name || ' ' || c.name <> ALL (w.lacks)
            WHERE livewell.works_queue(w.queues, v_job.queue)
                AND v_job.kind = ANY (w.kinds)
                AND w.expires_at > v_now
        )
    THEN
        RETURN QUERY
        SELECT 'no_credential', NULL::bigint, NULL::bigint, NULL::bigint, v_limiter.name,
            NULL::timestamptz, NULL::float8;
        RETURN;
    END IF;
    IF v_job.group_key IS NOT NULL THEN
        SELECT count(*) INTO v_n FROM livewell.job j
        WHERE j.queue = v_job.queue AND j.group_key = v_job.group_key AND j.state = 'running';
        IF v_n >= v_queue.group_limit THEN
            RETURN QUERY
            SELECT 'held_group', v_n, v_queue.group_limit::bigint,
                (
                    SELECT j.id FROM livewell.job j
                    WHERE j.queue = v_job.queue
                        AND j.group_key = v_job.group_key
                        AND j.state = 'running'
                    ORDER BY j.rank, j.id LIMIT 1
                ),
                v_job.group_key, NULL::timestamptz, NULL::float8;
            RETURN;
        END IF;
        SELECT count(*) INTO v_n FROM livewell.job j
        WHERE j.queue = ANY (v_running) AND j.group_key = v_job.group_key AND j.state = 'running';
        IF v_n >= v_limiter.per_key THEN
            RETURN QUERY
            SELECT 'key_limit', v_n, v_limiter.per_key::bigint,
                (
                    SELECT j.id FROM livewell.job j
                    WHERE j.queue = ANY (v_running)
                        AND j.group_key = v_job.group_key
                        AND j.state = 'running'
                    ORDER BY j.rank, j.id LIMIT 1
                ),
                v_job.group_key, NULL::timestamptz, NULL::float8;
            RETURN;
        END IF;
    END IF;
    IF v_job.lost > 0 THEN
        RETURN QUERY
        SELECT 'suspect', v_job.lost::bigint, v_queue.lost_max::bigint, NULL::bigint, NULL::text,
            NULL::timestamptz, NULL::float8;
        RETURN;
    END IF;
    SELECT count(*) INTO v_n FROM livewell.job j
    WHERE j.queue = v_job.queue AND j.credential IS NOT NULL;
    IF v_n >= v_queue.concurrency THEN
        RETURN QUERY
        SELECT 'queue_limit', v_n, v_queue.concurrency::bigint, NULL::bigint, v_job.queue,
            NULL::timestamptz, NULL::float8;
        RETURN;
    END IF;
    IF v_limiter.name IS NOT NULL THEN
        SELECT count(DISTINCT (j.worker, j.call_fence)) INTO v_n FROM livewell.job j
        WHERE j.queue = ANY (v_running) AND j.credential IS NOT NULL;
        IF v_n >= v_limiter.concurrency THEN
            RETURN QUERY
            SELECT 'concurrency', v_n, v_limiter.concurrency::bigint, NULL::bigint, v_limiter.name,
                NULL::timestamptz, NULL::float8;
            RETURN;
        END IF;
        SELECT r.* INTO v_room
        FROM livewell.limiter_room(
            v_limiter, v_now,
            (
                SELECT coalesce(jsonb_object_agg(u.credential, u.units), '{}')
                FROM (
                    SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
                    WHERE j.queue = ANY (v_running) AND j.credential IS NOT NULL
                    GROUP BY j.credential
                ) u
            ),
            CASE v_limiter.budget_unit
                WHEN 'calls' THEN 1
                ELSE coalesce(
                    v_job.units,
                    (
                        SELECT e.units FROM livewell.limiter_estimate e
                        WHERE e.limiter = v_limiter.name AND e.kind = v_job.kind
                    ),
                    v_limiter.estimate_units
                )
            END,
            ARRAY(
                SELECT c.name FROM livewell.limiter_credential c
                WHERE c.limiter = v_limiter.name
                    AND EXISTS (
                        SELECT FROM livewell.job j
                        WHERE j.queue = ANY (v_running)
                            AND j.credential IS NOT NULL
                            AND j.fence = c.probe_fence
                    )
            )
        ) AS r
        ORDER BY CASE v_job.lane WHEN 0 THEN r.calls ELSE r.background_calls END DESC,
            r.wait_seconds NULLS LAST
        LIMIT 1;
        IF FOUND AND (CASE v_job.lane WHEN 0 THEN v_room.calls ELSE v_room.background_calls END) = 0
        THEN
            RETURN QUERY
            SELECT v_room.reason, NULL::bigint, NULL::bigint, NULL::bigint, v_limiter.name,
                v_now + v_room.wait_seconds * interval '1 second', v_room.wait_seconds;
            RETURN;
        END IF;
    END IF;
    SELECT count(*) INTO v_n
    FROM (
        SELECT FROM livewell.job j
        WHERE j.queue = v_job.queue
            AND j.state = 'ready'
            AND j.lost = 0
            AND (j.lane, j.rank, j.id) < (v_job.lane, v_job.rank, v_job.id)
        LIMIT 1000000
    ) b;
    RETURN QUERY
    SELECT CASE WHEN v_n > 0 THEN 'behind' ELSE 'next' END, v_n, NULL::bigint, NULL::bigint,
        v_job.queue, NULL::timestamptz, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.why_job IS
    'Why a job is not running: the first thing that stands in its way.';
REVOKE ALL ON FUNCTION livewell.why_job FROM PUBLIC;
