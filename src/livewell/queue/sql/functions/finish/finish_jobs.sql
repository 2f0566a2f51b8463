-- End jobs we hold: p_ids succeeded, p_others (a JSON array of {id, fence, outcome, reason, error,
-- delay_seconds, traceback}) ended some other way.
-- Of a limited queue also those that succeeded are in p_others, with queue, kind, credential, used
-- (units), ended (how the call went, see book_calls), cause (the word for what went wrong) and
-- fared (how the job's own key did). What was used is booked even when the job is no longer ours:
-- the call was made. Once per fence; if it was charged by estimate meanwhile, the difference.
--
-- Called by: store_refreshes; exchange_jobs, for the results of a worker; job.transaction() as its
--            last statement before COMMIT.
-- Answer:    a row for each one that was not ours any more (fenced); nothing was written for those.
-- Index:     primary key. Deliberately no "state = 'running'" in the WHERE: it would offer
--            job_worker_idx to the planner.
-- Why two lists are enough for the successes: a fence is handed to one job once, so a row whose id
-- AND fence are both in our lists is the pair we were given.
-- Locks:     job rows, then limiters by name, then batches by id, all of them before anything is
--            ended if more than one statement below would take some (see job_ended).
-- Why one function: every finish, of plain or of limited jobs, would pay for calls of its steps.
-- width_bucket is a binary search in the sorted fences; = ANY (p_fences) looks at each of them for
-- each row (2.3 of 17 µs per job in batches of 500).
CREATE OR REPLACE FUNCTION livewell.finish_jobs(
    p_worker bigint, p_ids bigint[], p_fences bigint[], p_others jsonb DEFAULT NULL
)
RETURNS TABLE (job_id bigint, job_fence bigint)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz;
    v_fences    bigint[];
    v_n         integer;
    v_ids       bigint[];
    v_outcomes  text[];
    v_reasons   text[];
    v_errors    text[];
    v_delays    float8[];
    v_used      bigint[];
    v_ends      text[];
    v_traces    text[];
    v_causes    text[];
    v_fared     text[];
    v_owned     bigint[];           -- fences: a worker may hold results of two claims of one job
    v_queues    text[];
    v_batches   bigint[];
BEGIN
    IF p_others IS NOT NULL THEN
        -- Successes, other ends and late reports are written by different statements: each takes
        -- its limiters and batches in order, but all of them together do not (40P01).
        PERFORM FROM livewell.job j
        WHERE j.id = ANY (ARRAY(SELECT o.id FROM jsonb_to_recordset(p_others) AS o (id bigint)))
            AND j.worker = p_worker
        ORDER BY j.id FOR UPDATE;
        SELECT
            array_agg(DISTINCT coalesce(j.queue, o.queue)) FILTER (
                WHERE coalesce(j.credential, o.credential) IS NOT NULL
            ),
            array_agg(DISTINCT j.batch_id) FILTER (WHERE j.batch_id IS NOT NULL)
        INTO v_queues, v_batches
        FROM jsonb_to_recordset(p_others) AS o (
            id bigint, fence bigint, queue text, credential text
        )
        LEFT JOIN livewell.job j ON j.id = o.id AND j.fence = o.fence AND j.worker = p_worker;
        IF cardinality(p_ids) > 0 AND (v_queues IS NOT NULL OR v_batches IS NOT NULL) THEN
            WITH ours AS (
                SELECT j.queue, j.credential, j.batch_id FROM livewell.job j
                WHERE j.id = ANY (p_ids) AND j.worker = p_worker
                ORDER BY j.id FOR UPDATE
            )
            SELECT v_queues || array_agg(w.queue) FILTER (WHERE w.credential IS NOT NULL),
                v_batches || array_agg(w.batch_id) FILTER (WHERE w.batch_id IS NOT NULL)
            INTO v_queues, v_batches FROM ours w;
        END IF;
        IF v_queues IS NOT NULL THEN
            PERFORM FROM livewell.limiter l
            WHERE l.name = ANY (
                ARRAY(SELECT q.limiter FROM livewell.queue q WHERE q.name = ANY (v_queues))
            )
            ORDER BY l.name FOR NO KEY UPDATE;
        END IF;
        IF v_batches IS NOT NULL THEN
            PERFORM FROM livewell.batch b
            WHERE b.id = ANY (v_batches)
            ORDER BY b.id FOR NO KEY UPDATE;
        END IF;
    END IF;

    IF cardinality(p_ids) > 0 THEN
        v_now := livewell.now();
        v_fences := ARRAY(SELECT f FROM unnest(p_fences) AS f ORDER BY f);
        WITH gone AS (
            DELETE FROM livewell.job j
            WHERE j.id = ANY (p_ids)
                AND j.fence = v_fences[width_bucket(j.fence, v_fences)]
                AND j.worker = p_worker
            RETURNING j.id, j.fence, j.created_at, j.started_at, j.attempt, j.queue, j.kind
        )
        INSERT INTO livewell.job_history (
            id, fence, worker, created_at, started_at, finished_at, attempt, outcome, queue, kind,
            note
        )
        -- '': without a NULL a row is 7 bytes shorter, here and in the WAL
        SELECT g.id, g.fence, p_worker, g.created_at, g.started_at, v_now, g.attempt, 'succeeded',
            g.queue, g.kind, ''
        FROM gone g;
        GET DIAGNOSTICS v_n = ROW_COUNT;
        IF v_n < cardinality(p_ids) THEN
            -- Rare, so it may be dear: to collect what was done in the statement above took 0.8 of
            -- 15 µs per job. Not ours is what this transaction has not written; behind a savepoint
            -- that is all of a batch in which anything was fenced, which errs on the safe side.
            RETURN QUERY
            SELECT a.id, a.fence FROM unnest(p_ids, p_fences) AS a (id, fence)
            WHERE v_n = 0
                OR NOT EXISTS (
                    SELECT FROM livewell.job_history h
                    WHERE h.id = a.id
                        AND h.fence = a.fence
                        AND h.xmin = pg_catalog.pg_current_xact_id()::pg_catalog.xid
                );
        END IF;
    END IF;

    IF p_others IS NOT NULL THEN
        WITH owned AS (
            SELECT j.id, j.fence, o.outcome, o.reason, o.error, o.delay_seconds, o.used, o.ended,
                o.traceback, o.cause, o.fared
            FROM jsonb_to_recordset(p_others) AS o (
                id bigint, fence bigint, outcome text, reason text, error text,
                delay_seconds float8, used bigint, ended text, traceback text, cause text,
                fared text
            )
            -- Locked above. OFFSET 0: by primary key; statistics from when nothing ran say that
            -- worker = p_worker finds next to nothing, and then the whole table is read (257 ms for
            -- 200 jobs).
            CROSS JOIN LATERAL (
                SELECT b.id, b.fence, b.worker FROM livewell.job b WHERE b.id = o.id OFFSET 0
            ) j
            WHERE j.fence = o.fence AND j.worker = p_worker
            ORDER BY j.id
        )
        SELECT array_agg(w.id), array_agg(w.fence), array_agg(w.outcome), array_agg(w.reason),
            array_agg(w.error), array_agg(w.delay_seconds), array_agg(w.used), array_agg(w.ended),
            array_agg(w.traceback), array_agg(w.cause), array_agg(w.fared)
        INTO v_ids, v_owned, v_outcomes, v_reasons, v_errors, v_delays, v_used, v_ends, v_traces,
            v_causes, v_fared
        FROM owned w;
        PERFORM livewell.settle_jobs(
            v_ids, v_outcomes, v_reasons, v_errors, v_delays, v_used, v_ends, v_traces, v_causes,
            v_fared
        );
        PERFORM livewell.charge_jobs(
            array_agg(o.queue ORDER BY o.fence), array_agg(o.credential ORDER BY o.fence),
            array_agg(o.fence ORDER BY o.fence), array_agg(o.kind ORDER BY o.fence),
            array_agg(0::bigint ORDER BY o.fence), array_agg(o.used ORDER BY o.fence)
        )
        FROM jsonb_to_recordset(p_others) AS o (
            id bigint, fence bigint, queue text, kind text, credential text, used bigint
        )
        WHERE o.used IS NOT NULL
            AND o.credential IS NOT NULL
            AND o.fence <> ALL (coalesce(v_owned, '{}'))
        HAVING count(*) > 0;
        RETURN QUERY
        SELECT o.id, o.fence FROM jsonb_to_recordset(p_others) AS o (id bigint, fence bigint)
        WHERE o.fence <> ALL (coalesce(v_owned, '{}'));
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.finish_jobs IS
    'Finishes many held jobs with mixed outcomes; returns those the worker no longer owned.';
REVOKE ALL ON FUNCTION livewell.finish_jobs FROM PUBLIC;
