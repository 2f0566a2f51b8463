-- Take up to p_limit ready jobs from the given queues, in the given order of queues; within a queue
-- by lane, then rank, then id.
--
-- Called by: worker/claim_ahead.py (an idle worker; a busy one through exchange_jobs), inline
--            worker.
-- Index:     job_ready_idx, job_suspect_idx; the UPDATE goes by primary key.
-- Answer:    one row per job, `claimed`; their order is not promised, sort by (lane, rank, id).
--            Before them at most one row of news, with all other columns NULL: `buried` (the worker
--            has no lease); with empty marks also `slow` (looking took long: column rank holds
--            microseconds) or `paused` (nothing was found, and some queue is paused). Workers of
--            0.6.0 read these rows, so their shape stays.
-- Steps:     the lease; lock_suspect; the queues in turn (lock_behind_marks, if there are marks);
--            the UPDATE. Only what is seldom done has a function of its own: a call costs every
--            claim.
-- Limited queues are passed over, whoever asks: claim_limited is the only way to their jobs.
-- p_mark_ranks, p_mark_ids: marks, two for each queue (lane 0, lane 1): see lock_behind_marks.
-- Why the lease is locked first, in its own statement: burying takes FOR UPDATE on the worker row,
-- so a claim either commits before its worker is buried (and recovery sees its jobs) or finds the
-- row gone. FOR KEY SHARE, because FOR SHARE would block our own heartbeat.
-- Why the rows are locked first and updated by id: UPDATE … FROM (SELECT … LIMIT) ran 30-40 times
-- slower with the statistics of an empty table.
-- Fences: one block of numbers per claim, one number of it per job (a nextval per job took 1.5 of
--         17 µs). width_bucket is a binary search.
CREATE OR REPLACE FUNCTION livewell.claim_jobs(
    p_worker bigint,
    p_queues text[],
    p_limit integer,
    p_empty boolean DEFAULT false,
    p_mark_ranks bigint[] DEFAULT NULL,
    p_mark_ids bigint[] DEFAULT NULL
)
RETURNS SETOF livewell.claimed_job
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    v_limit     integer := least(p_limit, 10000);       -- fewer than a block of fences has
    v_found     bigint[] := '{}';
    v_news      livewell.claimed_job;
    v_queue     text;
    v_took      interval;
    v_fence     bigint;
    v_now       timestamptz;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'jobs are claimed on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;
    IF NOT FOUND THEN
        v_news.answer := 'buried';
        RETURN NEXT v_news;
        RETURN;
    END IF;
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    v_now := livewell.now();

    -- A job that was held by a worker when it died runs alone, so if it is the killer it takes
    -- nobody with it.
    IF p_empty
        AND v_limit > 0
        AND EXISTS (
            SELECT FROM livewell.job s
            WHERE s.queue = ANY (p_queues) AND s.state = 'ready' AND s.lost > 0
        )
    THEN
        v_found := livewell.lock_suspect(p_queues);
    END IF;

    IF cardinality(v_found) = 0 THEN
        FOR v_place IN 1 .. cardinality(p_queues) LOOP
            EXIT WHEN cardinality(v_found) >= v_limit;
            v_queue := p_queues[v_place];
            IF coalesce(cardinality(p_mark_ranks), 0) = 0 THEN
                -- Both lanes and the queue's own row in one statement: what an idle worker pays for
                -- is statements.
                v_found := v_found || ARRAY(
                    SELECT r.id FROM livewell.job r
                    WHERE r.queue = v_queue
                        AND r.state = 'ready'
                        AND r.lost = 0
                        AND EXISTS (
                            SELECT FROM livewell.queue q
                            WHERE q.name = v_queue
                                AND q.paused_at IS NULL
                                AND q.concurrency IS NULL
                                AND q.group_limit IS NULL
                                AND q.limiter IS NULL
                        )
                    ORDER BY r.lane, r.rank, r.id LIMIT v_limit - cardinality(v_found)
                    FOR UPDATE SKIP LOCKED
                );
                CONTINUE;
            END IF;
            v_found := v_found || livewell.lock_behind_marks(
                v_queue, v_limit - cardinality(v_found),
                p_mark_ranks[2 * v_place - 1:2 * v_place], p_mark_ids[2 * v_place - 1:2 * v_place]
            );
        END LOOP;
        v_took := livewell.now() - v_now;
        IF p_mark_ranks = '{}'
            AND v_took > interval '5 ms' + cardinality(v_found) * interval '20 microseconds'
        THEN
            v_news.answer := 'slow';
            v_news.rank := extract(epoch FROM v_took) * 1000000;
            RETURN NEXT v_news;
        ELSIF p_mark_ranks = '{}'
            AND cardinality(v_found) = 0
            AND EXISTS (
                SELECT FROM livewell.queue q
                WHERE q.name = ANY (p_queues) AND q.paused_at IS NOT NULL
            )
        THEN
            -- Quick, because a paused queue is not looked at: that says nothing about how long a
            -- look takes.
            v_news.answer := 'paused';
            RETURN NEXT v_news;
        END IF;
    END IF;

    IF cardinality(v_found) > 0 THEN
        v_fence := nextval('livewell.fence_seq');
        v_found := ARRAY(SELECT i FROM unnest(v_found) AS i ORDER BY i);
        RETURN QUERY
        UPDATE livewell.job j
        SET state = 'running', worker = p_worker, fence = v_fence + width_bucket(j.id, v_found),
            attempt = j.attempt + 1, started_at = v_now, deadline_at = NULL
        WHERE j.id = ANY (v_found)
        RETURNING 'claimed', j.id, j.fence, j.attempt, j.max_attempts, j.lost, j.lane, j.rank,
            j.queue, j.kind, j.payload::text, j.unique_key, j.group_key, j.trace;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.claim_jobs IS
    'Claims ready jobs for a worker incarnation, each under its own fence.';
REVOKE ALL ON FUNCTION livewell.claim_jobs FROM PUBLIC;
