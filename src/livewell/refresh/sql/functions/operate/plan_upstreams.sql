-- What each upstream allows, over all active credentials.
--
-- Called by: plan_state.
-- used:      [hours ago, units] for each hour that still counts for the budget. call_seconds: as
--            measured in the last hour.
CREATE OR REPLACE FUNCTION livewell.plan_upstreams(p_now timestamptz, p_upstreams_max integer)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_answer    jsonb;
BEGIN
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'upstream', u.name, 'paused', u.paused_at IS NOT NULL, 'credentials', c.n,
        'rate_calls', c.rate_calls, 'rate_seconds', l.rate_seconds,
        'permit_seconds', l.permit_seconds, 'reserve', l.reserve, 'concurrency', l.concurrency,
        'call_seconds', m.seconds, 'spent', g.calls, 'budget_units', l.budget_units * c.n,
        'budget_unit', l.budget_unit,
        'budget_stop', l.budget_stop, 'budget_background_stop', l.budget_background_stop,
        'budget_seconds', l.budget_seconds,
        'reset_seconds', CASE
                WHEN l.budget_resets IS NOT NULL
                    THEN extract(
                        epoch FROM livewell.budget_since(
                            l,
                            livewell.budget_since(l, p_now) + interval '36 hours') - p_now)::float8
            END,
        'used', b.used) ORDER BY u.name), '[]') INTO v_answer
    FROM (
        SELECT n.*, livewell.list_refresh_queues(n.name) AS queues FROM livewell.upstream n
        ORDER BY n.name LIMIT p_upstreams_max) u
    LEFT JOIN livewell.limiter l ON l.name = u.name
    LEFT JOIN LATERAL (
        SELECT count(*) AS n, sum(least(l.rate_calls, k.learnt_calls)) AS rate_calls
        FROM livewell.limiter_credential k
        WHERE k.limiter = u.name AND k.active) c ON true
    LEFT JOIN LATERAL (
        SELECT sum(s.ms)::float8 / nullif(sum(s.n), 0) / 1000 AS seconds FROM livewell.stat s
        WHERE s.minute > p_now - interval '1 hour' AND s.kind = 'livewell.refresh'
          AND s.queue = ANY (u.queues)) m ON true
    LEFT JOIN LATERAL (
        SELECT coalesce(sum(x.calls), 0) AS calls FROM (
            SELECT n.calls FROM livewell.limiter_grant n
            WHERE n.limiter = u.name AND n.at > p_now - l.rate_seconds * interval '1 second'
            UNION ALL
            SELECT f.calls FROM livewell.limiter_flight f
            WHERE f.limiter = u.name
              AND f.at > p_now - l.rate_seconds * interval '1 second') x) g ON true
    LEFT JOIN LATERAL (
        SELECT coalesce(
            jsonb_agg(jsonb_build_array(h.hours, h.units) ORDER BY h.hours DESC), '[]') AS used
        FROM (
            SELECT floor(
                extract(epoch FROM date_trunc('hour', p_now, 'UTC') - y.since)
                    / 3600)::float8 AS hours,
                   sum(y.units)::float8 AS units
            FROM livewell.limiter_usage y
            WHERE y.limiter = u.name AND l.budget_units IS NOT NULL
              AND y.since >= livewell.budget_since(l, p_now)
            GROUP BY 1) h) b ON true;
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.plan_upstreams IS 'What each upstream allows, and what of it is used.';
REVOKE ALL ON FUNCTION livewell.plan_upstreams FROM PUBLIC;
