-- How many calls a credential may make now under its rate, for each lane; and if lane 1 may make
-- none, in how many seconds to ask again.
--
-- Called by: limiter_room, for each credential that has a rate.
-- p_rate:    calls per window: as declared, or as few as the upstream was heard to allow.
-- Index:     limiter_grant_idx, limiter_flight_idx. The planner settings are those of the caller.
-- As the upstream counts it: a call counts from its grant until its answer is booked, and for one
-- window from then; without an answer, from the last instant at which it can arrive (end_calls).
-- So, for any window of the upstream and the call of it that was granted last: every other call of
-- it was in flight at that grant, or was booked after its arrival, which is less than a window
-- before. It was counted either way. However late requests and answers come, the sum is the limit
-- at most; no allowance for the way is needed. The price is use: W / (W + round trip).
-- On top of it calls are paced at rate/window with a burst, so that a viewer never waits out a
-- window that was spent in its first second.
CREATE OR REPLACE FUNCTION livewell.limiter_rate(
    p_limiter livewell.limiter,
    p_c livewell.limiter_credential,
    p_rate integer,
    p_now timestamptz,
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
    -- what is later counts
    v_counted   pg_catalog.timestamptz := p_now - p_limiter.rate_seconds * interval '1 second';
    v_pace      pg_catalog.float8 := p_limiter.rate_seconds / p_rate;       -- seconds per call
    v_burst     integer := least(p_limiter.burst, p_rate);
    -- The reserve never takes the last call of a window: a learnt limit may be as low as one.
    v_background integer := greatest(floor(p_rate * (1 - p_limiter.reserve)), 1);
    v_spent     bigint;
    v_free      integer;
    v_limit     integer;
    v_until     pg_catalog.timestamptz;
BEGIN
    SELECT
        coalesce(
            (
                SELECT sum(g.calls) FROM livewell.limiter_grant g
                WHERE g.limiter = p_limiter.name AND g.credential = p_c.name AND g.at > v_counted
            ),
            0
        ) + coalesce(
            (
                SELECT sum(f.calls) FROM livewell.limiter_flight f
                WHERE f.limiter = p_limiter.name AND f.credential = p_c.name AND f.at > v_counted
            ),
            0
        )
    INTO v_spent;
    -- paced_to runs ahead of now by what is spent; it may be ahead by the burst.
    v_free := floor(
        v_burst - greatest(extract(epoch FROM p_c.paced_to - p_now), 0) / v_pace + 1e-6
    );
    calls := greatest(least(p_rate - v_spent, coalesce(v_free, v_burst)), 0);
    background_calls := greatest(least(v_background - v_spent, calls), 0);
    IF background_calls > 0 THEN
        RETURN;
    END IF;
    -- When enough calls no longer count for one more, if the window is full; and when the pace has
    -- caught up. What is in flight may be answered now, and not sooner.
    v_limit := CASE WHEN calls = 0 THEN p_rate ELSE v_background END;
    SELECT o.at INTO v_until
    FROM (
        SELECT x.at, sum(x.calls) OVER (ORDER BY x.at) AS gone
        FROM (
            SELECT g.at, g.calls FROM livewell.limiter_grant g
            WHERE g.limiter = p_limiter.name AND g.credential = p_c.name AND g.at > v_counted
            UNION ALL
            SELECT least(f.at, p_now), f.calls FROM livewell.limiter_flight f
            WHERE f.limiter = p_limiter.name AND f.credential = p_c.name AND f.at > v_counted
        ) x
    ) o
    WHERE v_spent >= v_limit AND o.gone > v_spent - v_limit
    ORDER BY o.at LIMIT 1;
    wait_seconds := greatest(
        extract(epoch FROM v_until - v_counted),
        extract(epoch FROM p_c.paced_to - p_now) - (v_burst - 1) * v_pace,
        0.005
    );
END
$$;
COMMENT ON FUNCTION livewell.limiter_rate IS
    'What the rate of a credential allows now, per lane, and otherwise for how long to wait.';
REVOKE ALL ON FUNCTION livewell.limiter_rate FROM PUBLIC;
