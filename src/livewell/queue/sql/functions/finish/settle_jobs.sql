-- Decide what becomes of jobs that did not simply succeed. The caller has locked the rows and knows
-- they are its to settle.
--
-- Called by: drop_refreshes, reconcile_jobs, release_worker; finish_jobs (owner), recover_jobs
--            (lost, overdue), cancel_job, cancel_jobs.
-- Outcomes in:  retry      failed this time; delay_seconds NULL = the queue's back-off
--               refused    will never succeed: dead letter now (reason says why)
--               cancelled  ended because somebody asked
--               released   not the job's fault (deadlock, shutdown, no handler here): the attempt
--                          is given back
--               lost       its worker died: the attempt is given back, the loss is counted
--               succeeded  ended well, in a queue whose limiter wants to know more
-- p_used, p_ends, p_causes and p_fared: what the worker measured, see charge_jobs; a job that does
-- not say how its key fared fared as its call. What was never started (reconcile_jobs says so with
-- 0) used nothing.
-- What waits: a job held behind a key stays held while this one is tried again; a freed place in a
-- group goes to the next.
-- No `id = ANY (p_ids)` beside the joins: with the statistics of an empty table the array was
-- searched anew for every row (5,000 jobs: 4 s instead of 0.1 s).
-- A cancel that was asked for meanwhile wins over every way of running again.
-- Why one function: all but the charge is one statement, in which each job is read once.
CREATE OR REPLACE FUNCTION livewell.settle_jobs(
    p_ids bigint[],
    p_outcomes text[],
    p_reasons text[],
    p_errors text[],
    p_delays float8[],
    p_used bigint[] DEFAULT NULL,
    p_ends text[] DEFAULT NULL,
    p_tracebacks text[] DEFAULT NULL,
    p_causes text[] DEFAULT NULL,
    p_fared text[] DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_queues    text[];
    v_keys      text[];
    v_groups    text[];
BEGIN
    PERFORM livewell.charge_jobs(
        array_agg(j.queue ORDER BY j.id), array_agg(j.credential ORDER BY j.id),
        array_agg(j.fence ORDER BY j.id), array_agg(j.kind ORDER BY j.id),
        array_agg(j.reserved_units ORDER BY j.id), array_agg(g.used ORDER BY j.id),
        array_agg(g.ended ORDER BY j.id), array_agg(g.cause ORDER BY j.id),
        array_agg(coalesce(j.call_fence, j.fence) ORDER BY j.id),
        array_agg(coalesce(j.group_key, j.unique_key, j.id::text) ORDER BY j.id),
        array_agg(coalesce(g.fared, g.ended) ORDER BY j.id)
    )
    -- by primary key: else every running job of a limited queue is read
    FROM unnest(p_ids, p_used, p_ends, p_causes, p_fared) AS g (id, used, ended, cause, fared)
    CROSS JOIN LATERAL (SELECT b.* FROM livewell.job b WHERE b.id = g.id OFFSET 0) j
    WHERE j.credential IS NOT NULL
    HAVING count(*) > 0;

    IF num_nonnulls(VARIADIC p_errors) > 0 THEN
        PERFORM livewell.note_failures(p_ids, p_outcomes, p_errors, v_now);
    END IF;

    WITH given AS (
        SELECT *
        FROM unnest(
            p_ids, p_outcomes, p_reasons, p_errors, p_delays, p_tracebacks
        ) AS g (id, outcome, reason, error, delay_seconds, traceback)
    ),
    fate AS MATERIALIZED (
        SELECT j.id, j.queue, j.group_key, j.state, g.outcome, left(g.error, 4000) AS error,
            left(g.traceback, 8192) AS traceback,
            CASE
                WHEN g.outcome = 'succeeded' THEN 'succeeded'
                WHEN g.outcome = 'cancelled' OR j.cancel_requested AND g.outcome <> 'refused'
                    THEN 'cancelled'
                WHEN g.outcome = 'refused' THEN 'dead'
                WHEN g.outcome = 'retry' AND j.attempt >= j.max_attempts THEN 'dead'
                WHEN g.outcome = 'lost' AND j.lost + 1 >= q.lost_max THEN 'dead'
                ELSE 'again'
            END AS fate,
            CASE g.outcome
                WHEN 'refused' THEN coalesce(g.reason, 'refused')
                WHEN 'lost' THEN 'lost'
                ELSE 'attempts'
            END AS reason,
            CASE
                WHEN g.delay_seconds IS NOT NULL THEN greatest(g.delay_seconds, 0)
                -- base · 2ⁿ up to the cap, ± 20 % so that what failed together does not return
                -- together.
                WHEN g.outcome = 'retry'
                    THEN least(
                        q.backoff_cap_seconds, q.backoff_base_seconds * 2 ^ least(j.attempt - 1, 30)
                    ) * (0.8 + 0.4 * random())
                ELSE 0
            END * interval '1 second' AS delay
        FROM livewell.job j
        JOIN given g ON g.id = j.id
        JOIN livewell.queue q ON q.name = j.queue
    ),
    again AS (
        UPDATE livewell.job j
        SET
            state = CASE
                WHEN f.delay > interval '0' THEN 'delayed'
                ELSE 'ready'
            END::livewell.job_state,
            run_at = v_now + f.delay,
            -- A return to ready gets a new rank: its age counts from now, so it cannot overtake
            -- what waited meanwhile.
            rank = (extract(epoch FROM v_now + f.delay) * 1000)::bigint - j.priority * 60000,
            worker = NULL, credential = NULL, call_fence = NULL, reserved_units = NULL,
            started_at = NULL, deadline_at = NULL, progress = 0, progress_note = NULL,
            attempt = CASE
                WHEN f.outcome IN ('released', 'lost') THEN greatest(j.attempt - 1, 0)
                ELSE j.attempt
            END,
            lost = CASE WHEN f.outcome = 'lost' THEN j.lost + 1 ELSE j.lost END,
            last_error = coalesce(f.error, j.last_error),
            -- never an old one beside a newer error
            last_traceback = CASE WHEN f.error IS NULL THEN j.last_traceback ELSE f.traceback END
        FROM fate f
        WHERE f.id = j.id AND f.fate = 'again'
        RETURNING j.queue, j.group_key, f.state
    ),
    freed AS (
        SELECT array_agg(a.queue) AS queues, array_agg(NULL::text) AS keys,
            array_agg(a.group_key) AS groups
        FROM again a
        WHERE a.group_key IS NOT NULL AND a.state = 'running'
    ),
    gone AS (
        DELETE FROM livewell.job j
        USING fate f
        WHERE f.id = j.id AND f.fate <> 'again'
        RETURNING j.*, f.fate, f.reason, f.error, f.outcome, f.traceback
    ),
    buried AS (
        INSERT INTO livewell.dead_job (
            id, batch_id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue,
            kind, unique_key, group_key, call_key, reason, payload, error, traceback, trace, units
        )
        SELECT g.id, g.batch_id, g.created_at, v_now, g.attempt, g.max_attempts,
            g.lost + (g.outcome = 'lost')::integer, g.priority, g.lane, g.queue, g.kind,
            g.unique_key, g.group_key, g.call_key, g.reason, g.payload,
            coalesce(g.error, g.last_error),
            CASE WHEN g.error IS NULL THEN g.last_traceback ELSE g.traceback END, g.trace, g.units
        FROM gone g
        WHERE g.fate = 'dead'
    ),
    past AS (
        INSERT INTO livewell.job_history (
            id, fence, worker, created_at, started_at, finished_at, attempt, outcome, queue, kind,
            note
        )
        SELECT g.id, g.fence, g.worker, g.created_at, g.started_at, v_now, g.attempt,
            CASE g.fate
                WHEN 'succeeded' THEN 'succeeded'
                ELSE 'cancelled'
            END::livewell.job_outcome,
            g.queue, g.kind, g.error
        FROM gone g
        WHERE g.fate IN ('cancelled', 'succeeded')
    )
    SELECT f.queues, f.keys, f.groups INTO v_queues, v_keys, v_groups FROM freed f;
    IF v_queues IS NOT NULL THEN
        PERFORM livewell.release_held(v_queues, v_keys, v_groups);
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.settle_jobs IS
    'Sends locked jobs where their outcome leads: back to ready, to a later time, to the dead '
    'letters or to history as cancelled.';
REVOKE ALL ON FUNCTION livewell.settle_jobs FROM PUBLIC;
