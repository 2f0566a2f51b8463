-- The state of the limiters, by credential: rate and budget used, when the budget ends at the pace
-- of the last day, breaker, and how calls went in the last ten minutes.
--
-- Called by: system_state. Exact. In queue, not in limits, as list_limiters is: what is reserved is
--            known from what runs.
-- Index:     limiter_usage_pkey, limiter_calls_pkey, and those of list_limiters.
CREATE OR REPLACE FUNCTION livewell.state_limits()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object(
        'how', 'exact',
        'limiters', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', l.name, 'credential', l.credential, 'active', l.active,
                        'rate_calls', l.rate_calls, 'rate_seconds', l.rate_seconds,
                        'spent', l.spent, 'budget_unit', l.budget_unit,
                        'budget_units', l.budget_units, 'used', l.used, 'reserved', l.reserved,
                        'budget_stop', m.budget_stop,
                        'budget_background_stop', m.budget_background_stop, 'used_day', d.units,
                        'budget_left_seconds', CASE
                            WHEN d.units > 0
                                THEN (
                                    greatest(
                                        m.budget_units * m.budget_stop - l.used - l.reserved, 0
                                    ) / d.units * 86400
                                )::float8
                        END,
                        'running', l.running, 'concurrency', l.concurrency, 'breaker', l.breaker,
                        'open_until', c.open_until,
                        'quiet_until', CASE WHEN c.quiet_until > v_now THEN c.quiet_until END,
                        'learnt_calls', c.learnt_calls, 'calls_now', l.calls_now,
                        'waits_for', l.reason, 'wait_seconds', l.wait_seconds,
                        'calls', coalesce(k.calls, 0), 'failures', coalesce(k.failures, 0)
                    ) ORDER BY l.name,
                    l.credential
                ),
                '[]'
            )
            FROM livewell.list_limiters() AS l
            JOIN livewell.limiter m ON m.name = l.name
            JOIN livewell.limiter_credential c ON c.limiter = l.name AND c.name = l.credential
            LEFT JOIN LATERAL (
                SELECT sum(u.units) AS units FROM livewell.limiter_usage u
                WHERE u.limiter = l.name
                    AND u.credential = l.credential
                    AND u.since > v_now - interval '1 day'
            ) d ON true
            LEFT JOIN LATERAL (
                SELECT sum(x.calls) AS calls, sum(x.failures) AS failures
                FROM livewell.limiter_calls x
                WHERE x.limiter = l.name
                    AND x.credential = l.credential
                    AND x.since > v_now - interval '10 minutes'
            ) k ON true
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_limits IS 'Limiters by credential, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_limits FROM PUBLIC;
