-- How many calls each credential of a limiter may make now, for each lane; if none, why not and in
-- how many seconds to ask again.
--
-- Called by: credential_room, take_call; measure_room, permit_room (queue), with the limiter's row
--            locked by the caller in an earlier statement; why_limited and list_limiters without.
-- p_reserved: units reserved by what runs now, per credential, as {"name": units}; p_estimate: the
--             least that one more call would use; p_probing: credentials whose probe is in flight.
-- Index:      limiter_grant_idx, limiter_flight_idx.
-- The rate is limiter_rate's, the budget limiter_budget's: both say how they count.
CREATE OR REPLACE FUNCTION livewell.limiter_room(
    p_limiter livewell.limiter,
    p_now timestamptz,
    p_reserved jsonb,
    p_estimate float8,
    p_probing text[]
)
RETURNS TABLE (
    credential text, calls integer, background_calls integer, units bigint, background_units bigint,
    probe boolean, wait_seconds float8, reason text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_variable
DECLARE
    v_since     pg_catalog.timestamptz;
    v_c         livewell.limiter_credential;
    -- in queue: it knows the workers
    v_restart   pg_catalog.float8 := livewell.restart_wait(p_limiter.name, p_now);
    v_rate      integer;
    v_left      record;
BEGIN
    IF p_limiter.budget_units IS NOT NULL THEN
        v_since := livewell.budget_since(p_limiter, p_now);
    END IF;
    FOR v_c IN
        SELECT * FROM livewell.limiter_credential c
        WHERE c.limiter = p_limiter.name AND c.active
        ORDER BY c.name
    LOOP
        credential := v_c.name;
        calls := 0;
        background_calls := 0;
        units := NULL;
        background_units := NULL;
        probe := false;
        wait_seconds := NULL;
        reason := NULL;

        IF v_c.breaker <> 'closed' AND v_c.open_until > p_now THEN
            reason := 'breaker';
            wait_seconds := extract(epoch FROM v_c.open_until - p_now);
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF v_c.quiet_until > p_now THEN
            reason := 'upstream';
            wait_seconds := extract(epoch FROM v_c.quiet_until - p_now);
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF v_restart IS NOT NULL THEN
            reason := 'restart';
            wait_seconds := v_restart;
            RETURN NEXT;
            CONTINUE;
        END IF;
        probe := v_c.breaker <> 'closed';
        IF probe AND v_c.name = ANY (p_probing) THEN
            reason := 'probe';
            RETURN NEXT;
            CONTINUE;
        END IF;

        calls := 1000000;
        background_calls := 1000000;
        v_rate := least(p_limiter.rate_calls, v_c.learnt_calls);
        IF v_rate IS NOT NULL THEN
            v_left := livewell.limiter_rate(p_limiter, v_c, v_rate, p_now);
            calls := v_left.calls;
            background_calls := v_left.background_calls;
            IF background_calls = 0 THEN
                reason := 'rate';
                wait_seconds := v_left.wait_seconds;
            END IF;
        END IF;
        IF p_limiter.budget_units IS NOT NULL THEN
            v_left := livewell.limiter_budget(
                p_limiter, v_c.name, p_now, v_since, (p_reserved ->> v_c.name)::numeric, p_estimate
            );
            units := v_left.units;
            background_units := v_left.background_units;
            IF v_left.calls < calls OR v_left.background_calls < background_calls THEN
                calls := least(calls, v_left.calls);
                background_calls := least(background_calls, v_left.background_calls, calls);
                IF calls = 0 OR background_calls = 0 AND reason IS NULL THEN
                    reason := 'budget';
                    wait_seconds := v_left.wait_seconds;
                END IF;
            END IF;
        END IF;
        IF probe THEN
            calls := least(calls, 1);
            background_calls := least(background_calls, 1);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.limiter_room IS
    'What each credential allows now, per lane, and otherwise why not and for how long.';
REVOKE ALL ON FUNCTION livewell.limiter_room FROM PUBLIC;
