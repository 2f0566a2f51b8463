-- What a limiter has left for one more call of a job that runs, under the job's own credential. No
-- row: the credential is not in use any more.
--
-- Called by: take_permits, with its planner settings and the limiter's row, which it has locked in
--            an earlier statement. p_call: the fence of the job's call. p_estimate: what one call
--            uses.
-- Index:     job_limited_idx; see limiter_room.
CREATE OR REPLACE FUNCTION livewell.permit_room(
    p_limiter livewell.limiter,
    p_credential text,
    p_call bigint,
    p_estimate float8,
    p_now timestamptz
)
RETURNS TABLE (
    calls integer, background_calls integer, probe boolean, wait_seconds float8, reason text
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_running   text[];
    v_reserved  jsonb;
BEGIN
    v_running := ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = p_limiter.name);
    SELECT coalesce(jsonb_object_agg(r.credential, r.units), '{}') INTO v_reserved
    FROM (
        SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
        WHERE j.queue = ANY (v_running) AND j.credential IS NOT NULL
        GROUP BY j.credential
    ) r;
    RETURN QUERY
    SELECT r.calls, r.background_calls, r.probe, r.wait_seconds, r.reason
    FROM livewell.limiter_room(
        p_limiter, p_now, v_reserved, p_estimate,
        ARRAY(
            SELECT c.name FROM livewell.limiter_credential c
            -- the probe itself may go on
            WHERE c.limiter = p_limiter.name
                AND c.probe_fence IS NOT NULL
                AND c.probe_fence <> p_call
                AND EXISTS (
                    SELECT FROM livewell.job j
                    WHERE j.queue = ANY (v_running)
                        AND j.credential IS NOT NULL
                        AND j.fence = c.probe_fence
                )
        )
    ) AS r
    WHERE r.credential = p_credential;
END
$$;
COMMENT ON FUNCTION livewell.permit_room IS
    'What a limiter has left for a job that runs and wants more calls.';
REVOKE ALL ON FUNCTION livewell.permit_room FROM PUBLIC;
