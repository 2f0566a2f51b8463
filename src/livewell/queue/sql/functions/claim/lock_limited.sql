-- First step of claim_limited: take its locks, in their order, and say whether there is anything to
-- claim.
--
-- Called by: claim_limited.
-- Index:     job_ready_idx, job_suspect_idx.
-- Locks:     the worker's row (see claim_jobs), the queue's, its limiter's. Each is a statement of
--            its own: what runs is counted by statements that begin after the last of them.
-- Answer:    NULL: go on, with both rows as they are under the locks. buried: the worker has no
--            lease. wait: there is nothing to claim, and the reason.
-- The planner settings are those of claim_limited.
CREATE OR REPLACE FUNCTION livewell.lock_limited(
    p_worker bigint,
    p_queue text,
    OUT answer text,
    OUT reason text,
    OUT locked_queue livewell.queue,
    OUT locked_limiter livewell.limiter
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'jobs are claimed on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;
    IF NOT FOUND THEN
        answer := 'buried';
        RETURN;
    END IF;
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    SELECT * INTO locked_queue FROM livewell.queue q WHERE q.name = p_queue FOR NO KEY UPDATE;
    IF NOT FOUND OR locked_queue.paused_at IS NOT NULL THEN
        answer := 'wait';
        reason := 'paused';
        RETURN;
    END IF;
    -- Two questions, one for each index: asked as one, no index fits, and the whole table is read
    -- (4 ms of a claim beside 200,000 held jobs).
    IF NOT EXISTS (
        SELECT FROM livewell.job j WHERE j.queue = p_queue AND j.state = 'ready' AND j.lost = 0
    )
        AND NOT EXISTS (
            SELECT FROM livewell.job j WHERE j.queue = p_queue AND j.state = 'ready' AND j.lost > 0
        )
    THEN
        answer := 'wait';
        reason := 'nothing';
        RETURN;
    END IF;
    IF locked_queue.limiter IS NOT NULL THEN
        SELECT * INTO locked_limiter FROM livewell.limiter l
        WHERE l.name = locked_queue.limiter
        FOR NO KEY UPDATE;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.lock_limited IS
    'Locks what a claim of a limited queue counts under, or says why there is nothing to claim.';
REVOKE ALL ON FUNCTION livewell.lock_limited FROM PUBLIC;
