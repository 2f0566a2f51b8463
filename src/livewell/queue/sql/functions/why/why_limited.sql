-- What the limiter of a job says to its next call, for the credential that is free first. NULL: the
-- call may go.
--
-- Called by: why_job, with its planner settings. Index: job_limited_idx; see limiter_room.
-- p_running: the queues that share the limiter.
CREATE OR REPLACE FUNCTION livewell.why_limited(
    p_job livewell.job,
    p_limiter livewell.limiter,
    p_running text[],
    p_now timestamptz,
    OUT reason text,
    OUT wait_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_reserved  jsonb;
    v_estimate  float8;
    v_room      record;
BEGIN
    SELECT coalesce(jsonb_object_agg(u.credential, u.units), '{}') INTO v_reserved
    FROM (
        SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
        WHERE j.queue = ANY (p_running) AND j.credential IS NOT NULL
        GROUP BY j.credential
    ) u;
    v_estimate := CASE p_limiter.budget_unit
        WHEN 'calls' THEN 1
        ELSE coalesce(
            p_job.units,
            (
                SELECT e.units FROM livewell.limiter_estimate e
                WHERE e.limiter = p_limiter.name AND e.kind = p_job.kind
            ),
            p_limiter.estimate_units
        ) END;
    SELECT r.reason, r.wait_seconds,
        CASE p_job.lane WHEN 0 THEN r.calls ELSE r.background_calls END AS calls
    INTO v_room
    FROM livewell.limiter_room(
        p_limiter, p_now, v_reserved, v_estimate,
        ARRAY(
            SELECT c.name FROM livewell.limiter_credential c
            WHERE c.limiter = p_limiter.name
                AND EXISTS (
                    SELECT FROM livewell.job j
                    WHERE j.queue = ANY (p_running)
                        AND j.credential IS NOT NULL
                        AND j.fence = c.probe_fence
                )
        )
    ) AS r
    ORDER BY CASE p_job.lane WHEN 0 THEN r.calls ELSE r.background_calls END DESC,
        r.wait_seconds NULLS LAST
    LIMIT 1;
    IF v_room.calls = 0 THEN
        reason := v_room.reason;
        wait_seconds := v_room.wait_seconds;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.why_limited IS
    'Why the limiter of a job lets no call of it through; NULL if it does.';
REVOKE ALL ON FUNCTION livewell.why_limited FROM PUBLIC;
