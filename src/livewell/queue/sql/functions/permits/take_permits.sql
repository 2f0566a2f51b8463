-- More permits for a job that is running: it makes several calls.
--
-- Called by: job.permit(n).
-- Steps:     lock the job, then its limiter; end_calls for calls that were answered; permit_room;
--            grant_calls.
-- The job's row is locked before the limiter's, as whoever ends the job does: the other way round
-- the two deadlock.
-- p_answered: every call that the job has made so far was answered; they need not be counted as in
--             flight any longer. Not said, they are until the job ends, or until they can no longer
--             arrive.
-- Answer:    granted; or wait, with why and for how long; fenced, if the job is not ours any more;
--            or refused, if so many can never be had at once.
CREATE OR REPLACE FUNCTION livewell.take_permits(
    p_worker bigint, p_id bigint, p_fence bigint, p_calls integer, p_answered boolean DEFAULT false
)
RETURNS TABLE (
    answer text, reason text, wait_seconds float8, permit_seconds float8, calls_max integer
)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_begun     timestamptz := livewell.now();          -- a stopwatch for the locks
    v_waited    float8;
    v_now       timestamptz;
    v_limiter   livewell.limiter;
    v_job       record;
    v_estimate  float8;
    v_most      integer;
    v_room      record;
BEGIN
    SELECT j.queue, j.kind, j.lane, j.credential, j.call_fence, q.limiter INTO v_job
    FROM livewell.job j
    JOIN livewell.queue q ON q.name = j.queue
    WHERE j.id = p_id AND j.fence = p_fence AND j.worker = p_worker
    FOR NO KEY UPDATE OF j;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'fenced', NULL::text, NULL::float8, NULL::float8, NULL::integer;
        RETURN;
    END IF;
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = v_job.limiter FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        -- no limiter, no permits
        RETURN QUERY SELECT 'granted', NULL::text, NULL::float8, NULL::float8, NULL::integer;
        RETURN;
    END IF;
    v_now := livewell.now();
    v_waited := greatest(extract(epoch FROM v_now - v_begun), 0);
    -- Never more than what the upstream itself has stated.
    v_most := (
        SELECT least(v_limiter.rate_calls, c.learnt_calls) FROM livewell.limiter_credential c
        WHERE c.limiter = v_limiter.name AND c.name = v_job.credential
    );
    v_most := least(
        v_limiter.burst,
        CASE v_job.lane
            WHEN 0 THEN v_most
            ELSE greatest(floor(v_most * (1 - v_limiter.reserve)), 1)
        END
    );
    IF v_limiter.rate_calls IS NOT NULL AND p_calls > v_most THEN
        RETURN QUERY SELECT 'refused', 'rate', NULL::float8, NULL::float8, v_most;
        RETURN;
    END IF;
    IF p_answered THEN
        PERFORM livewell.end_calls(
            v_limiter.name, v_job.credential, ARRAY[v_job.call_fence], ARRAY[true]
        );
    END IF;
    v_estimate := coalesce(
        (
            SELECT e.units FROM livewell.limiter_estimate e
            WHERE e.limiter = v_limiter.name AND e.kind = v_job.kind
        ),
        v_limiter.estimate_units
    );
    SELECT * INTO v_room
    FROM livewell.permit_room(
        v_limiter, v_job.credential, v_job.call_fence, v_estimate, v_now
    );
    IF NOT FOUND
        OR (
            CASE v_job.lane WHEN 0 THEN v_room.calls ELSE v_room.background_calls END
        ) < (CASE WHEN v_room.probe THEN 1 ELSE p_calls END)
    THEN
        RETURN QUERY SELECT 'wait', v_room.reason, v_room.wait_seconds, NULL::float8, NULL::integer;
        RETURN;
    END IF;
    PERFORM livewell.grant_calls(
        v_limiter, v_job.credential, v_now, p_calls, NULL, ARRAY[v_job.call_fence]
    );
    IF v_limiter.budget_units IS NOT NULL THEN
        UPDATE livewell.job j
        SET reserved_units = coalesce(j.reserved_units, 0) + CASE v_limiter.budget_unit
            WHEN 'calls' THEN p_calls
            ELSE ceil(v_estimate)::bigint * p_calls
        END
        WHERE j.id = p_id AND j.fence = p_fence AND j.worker = p_worker;
    END IF;
    RETURN QUERY
    SELECT 'granted', NULL::text, NULL::float8, v_limiter.permit_seconds + v_waited, NULL::integer;
END
$$;
COMMENT ON FUNCTION livewell.take_permits IS
    'Gives a running job more permits, or says how long to wait for them.';
REVOKE ALL ON FUNCTION livewell.take_permits FROM PUBLIC;
