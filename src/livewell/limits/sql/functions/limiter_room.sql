-- How many calls each credential of a limiter may make now, for each lane; if none, why not and in
-- how many seconds to ask again.
--
-- Called by: measure_room, take_permits (queue), with the limiter's row locked by the caller in an
--            earlier statement; why_limited and list_limiters without.
-- p_reserved: units reserved by what runs now, per credential, as {"name": units}; p_estimate: the
--             least that one more call would use; p_probing: credentials whose probe is in flight.
-- Index:      limiter_grant_idx, limiter_flight_idx.
-- Rate, as the upstream counts it: a call counts from its grant until its answer is booked, and for
-- one window from then; without an answer, from the last instant at which it can arrive
-- (end_calls).
-- So, for any window of the upstream and the call of it that was granted last: every other call of
-- it was in flight at that grant, or was booked after its arrival, which is less than a window
-- before.
-- It was counted either way. However late requests and answers come, the sum is the limit at most;
-- no allowance for the way is needed. The price is use: W / (W + round trip).
-- On top of it calls are paced at rate/window with a burst, so that a viewer never waits out a
-- window that was spent in its first second.
-- Budget: predictive: used + reserved + what is about to be fetched stays below the stop.
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
    v_spent     bigint;
    v_counted   pg_catalog.timestamptz;    -- what is later counts
    v_pace      pg_catalog.float8;         -- seconds per call
    v_free      integer;
    v_limit     integer;
    v_background integer;
    v_until     pg_catalog.timestamptz;
    v_used      numeric;
    v_budget    integer[];      -- calls that fit into the budget: lane 0, lane 1
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
            v_counted := p_now - p_limiter.rate_seconds * interval '1 second';
            SELECT coalesce(
                (
                    SELECT sum(g.calls) FROM livewell.limiter_grant g
                    WHERE g.limiter = p_limiter.name
                        AND g.credential = v_c.name
                        AND g.at > v_counted
                ),
                0
            )
                + coalesce(
                    (
                        SELECT sum(f.calls) FROM livewell.limiter_flight f
                        WHERE f.limiter = p_limiter.name
                            AND f.credential = v_c.name
                            AND f.at > v_counted
                    ),
                    0
                )
            INTO v_spent;
            v_pace := p_limiter.rate_seconds / v_rate;
            -- paced_to runs ahead of now by what is spent; it may be ahead by the burst.
            v_free := floor(
                least(p_limiter.burst, v_rate)
                    - greatest(extract(epoch FROM v_c.paced_to - p_now), 0) / v_pace + 1e-6
            );
            calls := greatest(
                least(v_rate - v_spent, coalesce(v_free, least(p_limiter.burst, v_rate))), 0
            );
            -- The reserve never takes the last call of a window: a learnt limit may be as low as
            -- one.
            v_background := greatest(floor(v_rate * (1 - p_limiter.reserve)), 1);
            background_calls := greatest(least(v_background - v_spent, calls), 0);
            IF background_calls = 0 THEN
                reason := 'rate';
                -- When enough calls no longer count for one more, if the window is full; and when
                -- the pace has caught up. What is in flight may be answered now, and not sooner.
                v_limit := CASE WHEN calls = 0 THEN v_rate ELSE v_background END;
                SELECT o.at INTO v_until
                FROM (
                    SELECT x.at, sum(x.calls) OVER (ORDER BY x.at) AS gone
                    FROM (
                        SELECT g.at, g.calls FROM livewell.limiter_grant g
                        WHERE g.limiter = p_limiter.name
                            AND g.credential = v_c.name
                            AND g.at > v_counted
                        UNION ALL
                        SELECT least(f.at, p_now), f.calls FROM livewell.limiter_flight f
                        WHERE f.limiter = p_limiter.name
                            AND f.credential = v_c.name
                            AND f.at > v_counted
                    ) x
                ) o
                WHERE v_spent >= v_limit AND o.gone > v_spent - v_limit
                ORDER BY o.at LIMIT 1;
                wait_seconds := greatest(
                    extract(epoch FROM v_until - v_counted),
                    extract(epoch FROM v_c.paced_to - p_now)
                        - (least(p_limiter.burst, v_rate) - 1) * v_pace,
                    0.005
                );
            END IF;
        END IF;

        IF p_limiter.budget_units IS NOT NULL THEN
            SELECT coalesce(sum(u.units), 0) + coalesce((p_reserved ->> v_c.name)::numeric, 0)
            INTO v_used FROM livewell.limiter_usage u
            WHERE u.limiter = p_limiter.name AND u.credential = v_c.name AND u.since >= v_since;
            units := greatest(
                floor(p_limiter.budget_units * p_limiter.budget_stop::numeric - v_used), 0
            );
            background_units := greatest(
                floor(p_limiter.budget_units * p_limiter.budget_background_stop::numeric - v_used),
                0
            );
            v_budget := ARRAY(
                SELECT least(floor(n / greatest(p_estimate, 1)), 1000000)::integer
                FROM unnest(ARRAY[units, background_units]) AS n
            );
            IF v_budget[1] < calls OR v_budget[2] < background_calls THEN
                calls := least(calls, v_budget[1]);
                background_calls := least(background_calls, v_budget[2], calls);
                IF calls = 0 OR background_calls = 0 AND reason IS NULL THEN
                    reason := 'budget';
                    wait_seconds := extract(
                        epoch FROM CASE
                            -- The next reset: the day in between has 23, 24 or 25 hours.
                            WHEN p_limiter.budget_resets IS NOT NULL
                                THEN livewell.budget_since(p_limiter, v_since + interval '36 hours')
                                    - p_now
                            -- Rolling: room comes when the oldest hour with usage leaves the span.
                            ELSE (
                                SELECT min(u.since) FROM livewell.limiter_usage u
                                WHERE u.limiter = p_limiter.name
                                    AND u.credential = v_c.name
                                    AND u.since >= v_since
                                    AND u.units > 0
                            ) + (p_limiter.budget_seconds + 3600) * interval '1 second' - p_now
                        END
                    );
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
