-- Every credential of every limiter: what it may still do, what it has used, and what it waits for.
--
-- Called by: budgets_above, rule_budget_reached, rule_calls_near_limit, state_limits; CLI `queues
--            limiters`. In queue, not in limits: what is reserved is known from what runs.
-- Index:     job_limited_idx, limiter_grant_idx, limiter_flight_idx, limiter_usage_pkey.
CREATE OR REPLACE FUNCTION livewell.list_limiters()
RETURNS TABLE (
    name text, credential text, active boolean, rate_calls integer, rate_seconds float8,
    spent bigint, budget_unit text, budget_units bigint, used bigint, reserved bigint,
    running bigint, concurrency integer, breaker text, calls_now integer, reason text,
    wait_seconds float8, queues text[]
)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_limiter   livewell.limiter;
    v_queues    text[];
BEGIN
    FOR v_limiter IN SELECT * FROM livewell.limiter l ORDER BY l.name LIMIT 1000 LOOP
        v_queues := ARRAY(
            SELECT q.name FROM livewell.queue q WHERE q.limiter = v_limiter.name ORDER BY q.name
        );
        RETURN QUERY
        WITH run AS (
            SELECT j.credential, sum(j.reserved_units)::bigint AS units,
                count(DISTINCT (j.worker, j.call_fence)) AS calls, array_agg(j.fence) AS fences
            FROM livewell.job j
            WHERE j.queue = ANY (v_queues) AND j.credential IS NOT NULL
            GROUP BY j.credential
        )
        SELECT v_limiter.name, c.name, c.active, least(v_limiter.rate_calls, c.learnt_calls),
            v_limiter.rate_seconds,
            (
                SELECT coalesce(sum(x.calls), 0)::bigint
                FROM (
                    SELECT g.calls FROM livewell.limiter_grant g
                    WHERE g.limiter = v_limiter.name
                        AND g.credential = c.name
                        AND g.at > v_now - v_limiter.rate_seconds * interval '1 second'
                    UNION ALL
                    SELECT f.calls FROM livewell.limiter_flight f
                    WHERE f.limiter = v_limiter.name
                        AND f.credential = c.name
                        AND f.at > v_now - v_limiter.rate_seconds * interval '1 second'
                ) x
            ),
            v_limiter.budget_unit, v_limiter.budget_units,
            (
                SELECT coalesce(sum(u.units), 0)::bigint FROM livewell.limiter_usage u
                WHERE u.limiter = v_limiter.name
                    AND u.credential = c.name
                    AND v_limiter.budget_units IS NOT NULL
                    AND u.since >= livewell.budget_since(v_limiter, v_now)
            ),
            coalesce(r.units, 0), coalesce(r.calls, 0), v_limiter.concurrency, c.breaker, m.calls,
            m.reason, m.wait_seconds, v_queues
        FROM livewell.limiter_credential c
        LEFT JOIN run r ON r.credential = c.name
        LEFT JOIN livewell.limiter_room(
            v_limiter, v_now,
            (SELECT coalesce(jsonb_object_agg(x.credential, x.units), '{}') FROM run x),
            v_limiter.estimate_units,
            ARRAY(
                SELECT p.name
                FROM livewell.limiter_credential p
                JOIN run x ON x.credential = p.name
                WHERE p.limiter = v_limiter.name AND p.probe_fence = ANY (x.fences)
            )
        ) m ON m.credential = c.name
        WHERE c.limiter = v_limiter.name
        ORDER BY c.name;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.list_limiters IS
    'Limiters by credential: rate and budget used, breaker, and what a claim would be told now.';
REVOKE ALL ON FUNCTION livewell.list_limiters FROM PUBLIC;
