-- Take jobs of one limited queue: at most p_calls calls, as many as its concurrency, its groups and
-- its limiter allow now. Blocked work is never claimed and never burns an attempt.
--
--     lock_limited ──locked──▶ measure_room ──room──▶ pick_limited ──jobs──▶ take
--          └──buried, nothing──────┴──no room─────────────┴──none may go──▶ why, and for how long
--
-- Called by: worker/claim_limited.py, inline worker. Never ahead of need: each call must start at
--            once, its permit is short-lived.
-- p_kinds, p_batches: how many jobs of a kind one call may carry; kinds that are not named carry
-- one.
-- p_credentials: those that the worker can use; NULL: whichever there are. What it could not call
--                it does not claim.
-- Half open, the probe is chosen: a key that is not failing goes before any that is (see
-- limited_candidates), and those that are failing not before failing_until.
-- Index:     job_ready_idx, job_suspect_idx, job_limited_idx, job_group_idx. The planner settings
--            below hold in the steps too.
-- Answer:    the jobs (those with the same `call` are one call and one permit); or one row that
--            says why there are none, and when to ask again.
-- Lock first, then read, in separate statements: the queue's row, then its limiter's;
-- what runs is counted by statements that begin after that.
-- A permit is counted from the grant, not from before we waited for those locks: twenty workers
-- that ask at once wait for each other longer than a short permit lasts. The worker counts from
-- when it sent the claim, so the time spent waiting in here is added; all of it lies between the
-- sending and the grant. It ends also where there is no rate: a call that is made much later may
-- fall into a silence that was asked for meanwhile.
CREATE OR REPLACE FUNCTION livewell.claim_limited(
    p_worker bigint,
    p_queue text,
    p_calls integer,
    p_empty boolean DEFAULT false,
    p_kinds text[] DEFAULT '{}',
    p_batches integer[] DEFAULT '{}',
    p_credentials text[] DEFAULT NULL
)
RETURNS SETOF livewell.limited_job
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_begun     timestamptz := livewell.now();          -- a stopwatch for the locks
    v_locked    record;
    v_queue     livewell.queue;
    v_limiter   livewell.limiter;
    v_now       timestamptz;
    v_waited    float8;                 -- seconds, for the locks
    v_room      livewell.limited_room;
    v_pick      livewell.limited_pick;
    v_fence     bigint;
BEGIN
    v_locked := livewell.lock_limited(p_worker, p_queue);
    IF v_locked.answer IS NOT NULL THEN
        RETURN NEXT livewell.limited_answer(v_locked.answer, v_locked.reason);
        RETURN;
    END IF;
    v_queue := v_locked.locked_queue;
    v_limiter := v_locked.locked_limiter;
    v_now := livewell.now();
    v_waited := greatest(extract(epoch FROM v_now - v_begun), 0);

    v_room := livewell.measure_room(v_queue, v_limiter, v_now, p_calls, p_credentials);
    IF v_room.calls <= 0 THEN
        RETURN NEXT livewell.limited_answer('wait', v_room.reason, v_room.wait_seconds);
        RETURN;
    END IF;
    v_pick := livewell.pick_limited(
        v_queue, v_limiter, v_room, v_now, p_empty, p_kinds, p_batches
    );
    IF cardinality(v_pick.jobs) = 0 THEN
        RETURN NEXT livewell.limited_answer('wait', v_pick.reason, v_pick.wait_seconds);
        RETURN;
    END IF;

    v_fence := nextval('livewell.fence_seq');
    IF v_room.credential IS NOT NULL THEN
        PERFORM livewell.grant_calls(
            v_limiter, v_room.credential, v_now, v_pick.n_calls, v_fence + 1,
            ARRAY(SELECT DISTINCT v_fence + c FROM unnest(v_pick.calls) AS c)
        );
    END IF;
    RETURN QUERY
    UPDATE livewell.job j
    SET state = 'running', worker = p_worker, fence = v_fence + t.place,
        call_fence = v_fence + t.call, attempt = j.attempt + 1, started_at = v_now,
        deadline_at = NULL, credential = coalesce(v_room.credential, ''),
        reserved_units = CASE WHEN v_limiter.budget_units IS NOT NULL THEN t.units END
    FROM unnest(v_pick.jobs, v_pick.calls, v_pick.units)
        WITH ORDINALITY AS t (id, call, units, place)
    WHERE j.id = t.id
    RETURNING 'claimed', j.id, j.fence, j.attempt, j.max_attempts, j.lost, j.lane, j.rank, j.queue,
        j.kind, j.payload::text, j.unique_key, j.group_key, j.trace, j.call_fence, j.call_key,
        j.credential,
        v_limiter.permit_seconds + v_waited,
        NULL::float8, NULL::text;
END
$$;
COMMENT ON FUNCTION livewell.claim_limited IS
    'Claims jobs of a limited queue within its limits, each under its own fence and with its '
    'credential.';
REVOKE ALL ON FUNCTION livewell.claim_limited FROM PUBLIC;
