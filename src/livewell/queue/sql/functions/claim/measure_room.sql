-- Second step of claim_limited: how many calls and jobs of a queue may start now, and under which
-- credential.
--
-- Called by: claim_limited, with the rows that lock_limited has locked in earlier statements.
-- Index:     job_limited_idx.
-- p_credentials: those that the worker can use; NULL: whichever there are.
-- The planner settings are those of claim_limited.
CREATE OR REPLACE FUNCTION livewell.measure_room(
    p_queue livewell.queue,
    p_limiter livewell.limiter,
    p_now timestamptz,
    p_calls integer,
    p_credentials text[]
)
RETURNS livewell.limited_room
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_room      livewell.limited_room;
    v_reserved  jsonb;
    v_c         record;
    v_most      integer := 0;
BEGIN
    v_room.calls := least(p_calls, 1000);
    v_room.jobs := 5000;        -- a block of fences has 16383
    v_room.probe := false;
    IF p_queue.concurrency IS NOT NULL THEN
        v_room.jobs := p_queue.concurrency - (
            SELECT count(*) FROM livewell.job j
            WHERE j.queue = p_queue.name AND j.credential IS NOT NULL
        );
        v_room.calls := least(v_room.calls, v_room.jobs);
        v_room.reason := CASE WHEN v_room.calls <= 0 THEN 'queue' END;
    END IF;
    IF p_limiter.name IS NULL OR v_room.calls <= 0 THEN
        RETURN v_room;
    END IF;
    v_room.running := ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = p_limiter.name);
    IF p_limiter.concurrency IS NOT NULL THEN
        -- Calls, not jobs: a call of fifty jobs is one.
        v_room.calls := least(
            v_room.calls,
            p_limiter.concurrency - (
                SELECT count(DISTINCT (j.worker, coalesce(j.call_fence, j.fence)))
                FROM livewell.job j
                WHERE j.queue = ANY (v_room.running) AND j.credential IS NOT NULL
            )
        );
        IF v_room.calls <= 0 THEN
            v_room.reason := 'concurrency';
            RETURN v_room;
        END IF;
    END IF;

    SELECT coalesce(jsonb_object_agg(r.credential, r.units), '{}') INTO v_reserved
    FROM (
        SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
        WHERE j.queue = ANY (v_room.running) AND j.credential IS NOT NULL
        GROUP BY j.credential
    ) r;
    SELECT coalesce(jsonb_object_agg(e.kind, ceil(e.units)), '{}') INTO v_room.estimates
    FROM livewell.limiter_estimate e
    WHERE e.limiter = p_limiter.name;
    FOR v_c IN
        SELECT *
        FROM livewell.limiter_room(
            p_limiter, p_now, v_reserved,
            CASE p_limiter.budget_unit
                WHEN 'calls' THEN 1
                ELSE least(
                    p_limiter.estimate_units,
                    (SELECT min(x.value::float8) FROM jsonb_each_text(v_room.estimates) AS x)
                )
            END,
            ARRAY(
                SELECT c.name FROM livewell.limiter_credential c
                WHERE c.limiter = p_limiter.name
                    AND c.probe_fence IS NOT NULL
                    AND EXISTS (
                        SELECT FROM livewell.job j
                        WHERE j.queue = ANY (v_room.running)
                            AND j.credential IS NOT NULL
                            AND j.fence = c.probe_fence
                    )
            )
        ) AS r
        WHERE p_credentials IS NULL OR r.credential = ANY (p_credentials)
    LOOP
        IF v_c.calls > 0
            AND (
                v_room.credential IS NULL
                OR (v_c.calls, v_c.background_calls) > (v_most, v_room.background_calls)
            )
        THEN
            v_most := v_c.calls;
            v_room.credential := v_c.credential;
            v_room.background_calls := v_c.background_calls;
            v_room.probe := v_c.probe;
            v_room.units := v_c.units;
            v_room.background_units := v_c.background_units;
        END IF;
        IF v_c.reason IS NOT NULL
            AND (v_room.reason IS NULL OR v_c.wait_seconds < v_room.wait_seconds)
        THEN
            v_room.reason := v_c.reason;
            v_room.wait_seconds := v_c.wait_seconds;
        END IF;
    END LOOP;
    v_room.calls := least(v_room.calls, v_most);
    IF v_room.probe THEN
        SELECT c.failing_until INTO v_room.failing_until FROM livewell.limiter_credential c
        WHERE c.limiter = p_limiter.name AND c.name = v_room.credential;
    END IF;
    RETURN v_room;
END
$$;
COMMENT ON FUNCTION livewell.measure_room IS
    'What a limited queue may start now: under its concurrency, its limiter and a credential.';
REVOKE ALL ON FUNCTION livewell.measure_room FROM PUBLIC;
