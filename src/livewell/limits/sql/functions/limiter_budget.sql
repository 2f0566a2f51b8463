-- How many units of its budget a credential has left, for each lane, how many calls that is, and in
-- how many seconds there will be more.
--
-- Called by: limiter_room, for each credential of a limiter with a budget.
-- p_reserved: units reserved by what runs now; p_estimate: the least that one more call would use.
-- Index:      limiter_usage_pkey. The planner settings are those of the caller.
-- Predictive: used + reserved + what is about to be fetched stays below the stop.
CREATE OR REPLACE FUNCTION livewell.limiter_budget(
    p_limiter livewell.limiter,
    p_credential text,
    p_now timestamptz,
    p_since timestamptz,
    p_reserved numeric,
    p_estimate float8,
    OUT units bigint,
    OUT background_units bigint,
    OUT calls integer,
    OUT background_calls integer,
    OUT wait_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_used  numeric;
BEGIN
    SELECT coalesce(sum(u.units), 0) + coalesce(p_reserved, 0) INTO v_used
    FROM livewell.limiter_usage u
    WHERE u.limiter = p_limiter.name AND u.credential = p_credential AND u.since >= p_since;
    units := greatest(
        floor(p_limiter.budget_units * p_limiter.budget_stop::numeric - v_used), 0
    );
    background_units := greatest(
        floor(p_limiter.budget_units * p_limiter.budget_background_stop::numeric - v_used), 0
    );
    calls := least(floor(units / greatest(p_estimate, 1)), 1000000);
    background_calls := least(floor(background_units / greatest(p_estimate, 1)), 1000000);
    IF background_calls > 0 THEN
        RETURN;
    END IF;
    wait_seconds := extract(
        epoch FROM CASE
            -- The next reset: the day in between has 23, 24 or 25 hours.
            WHEN p_limiter.budget_resets IS NOT NULL
                THEN livewell.budget_since(p_limiter, p_since + interval '36 hours') - p_now
            -- Rolling: room comes when the oldest hour with usage leaves the span.
            ELSE (
                SELECT min(u.since) FROM livewell.limiter_usage u
                WHERE u.limiter = p_limiter.name
                    AND u.credential = p_credential
                    AND u.since >= p_since
                    AND u.units > 0
            ) + (p_limiter.budget_seconds + 3600) * interval '1 second' - p_now
        END
    );
END
$$;
COMMENT ON FUNCTION livewell.limiter_budget IS
    'What the budget of a credential leaves, per lane, and otherwise for how long to wait.';
REVOKE ALL ON FUNCTION livewell.limiter_budget FROM PUBLIC;
