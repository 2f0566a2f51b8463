-- Take up to p_limit ready jobs from the given queues, in the given order of queues; within a queue by lane, then rank, then id.
--
-- Called by: claimer (through exchange_jobs), inline worker.
-- Index:     job_ready_idx, job_suspect_idx; the UPDATE goes by primary key.
-- Order of the answer is not promised; sort by (lane, rank, id).
-- Why the lease is locked first, in its own statement: burying takes FOR UPDATE on the worker row, so a claim either commits before its worker is buried
-- (and recovery sees its jobs) or finds the row gone. FOR KEY SHARE, because FOR SHARE would block our own heartbeat.
-- Why ANY(ARRAY(SELECT …)): UPDATE … FROM (SELECT … LIMIT) ran 30-40 times slower with the statistics of an empty table.
CREATE OR REPLACE FUNCTION livewell.claim_jobs(p_worker bigint, p_queues text[], p_limit integer, p_empty boolean DEFAULT false)
RETURNS SETOF livewell.claimed_job
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    v_now   timestamptz;
    v_left  integer := p_limit;
    v_got   integer;
    v_queue text;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'jobs are claimed on the primary only; this server is a replica' USING ERRCODE = 'LW001';
    END IF;
    PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN NEXT ROW('buried', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::livewell.claimed_job;
        RETURN;
    END IF;
    v_now := livewell.now();

    FOREACH v_queue IN ARRAY p_queues LOOP
        EXIT WHEN v_left <= 0;
        CONTINUE WHEN NOT EXISTS (SELECT FROM livewell.queue q WHERE q.name = v_queue AND q.paused_at IS NULL);

        -- A job that was held by a worker when it died runs alone, so if it is the killer it takes nobody with it.
        IF p_empty THEN
            RETURN QUERY
            UPDATE livewell.job j
            SET state = 'running', worker = p_worker, fence = nextval('livewell.fence_seq'), attempt = j.attempt + 1, started_at = v_now, deadline_at = NULL
            WHERE j.id = ANY (ARRAY(
                SELECT s.id FROM livewell.job s WHERE s.queue = v_queue AND s.state = 'ready' AND s.lost > 0
                ORDER BY s.lane, s.rank, s.id LIMIT 1 FOR UPDATE SKIP LOCKED))
            RETURNING 'claimed', j.id, j.fence, j.attempt, j.max_attempts, j.lost, j.lane, j.rank, j.queue, j.kind, j.payload::text, j.unique_key, j.group_key, j.trace;
            IF FOUND THEN
                RETURN;
            END IF;
        END IF;
    END LOOP;

    FOREACH v_queue IN ARRAY p_queues LOOP
        EXIT WHEN v_left <= 0;
        CONTINUE WHEN NOT EXISTS (SELECT FROM livewell.queue q WHERE q.name = v_queue AND q.paused_at IS NULL);
        RETURN QUERY
        UPDATE livewell.job j
        SET state = 'running', worker = p_worker, fence = nextval('livewell.fence_seq'), attempt = j.attempt + 1, started_at = v_now, deadline_at = NULL
        WHERE j.id = ANY (ARRAY(
            SELECT r.id FROM livewell.job r WHERE r.queue = v_queue AND r.state = 'ready' AND r.lost = 0
            ORDER BY r.lane, r.rank, r.id LIMIT v_left FOR UPDATE SKIP LOCKED))
        RETURNING 'claimed', j.id, j.fence, j.attempt, j.max_attempts, j.lost, j.lane, j.rank, j.queue, j.kind, j.payload::text, j.unique_key, j.group_key, j.trace;
        GET DIAGNOSTICS v_got = ROW_COUNT;
        v_left := v_left - v_got;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.claim_jobs IS 'Claims ready jobs for a worker incarnation, each under its own fence.';
REVOKE ALL ON FUNCTION livewell.claim_jobs FROM PUBLIC;
