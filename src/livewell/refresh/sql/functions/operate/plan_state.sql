-- What a plan is computed from, as one document: who watches how many keys with which time to live, what a key of each type costs as measured, and what each upstream allows (X4).
--
-- Called by: refresh/plan/report.py, for `livewell plan` and GET /v1/plan. The arithmetic is in refresh/plan/demand.py.
-- Reads all subscriptions: for people who ask, never on the way of a refresh (contract 7). 100,000 sessions with 300,000 subscriptions over 38,000 keys: 1.1 to 2.3 s on two busy cores.
-- Bounds:    c_subscriptions_max subscriptions and c_groups_max groups are looked at, c_types_max types; cut says that there were more.
-- groups:    watched keys of one type, alike in time to live (two digits of it) and in viewers (within a fifth). calls: how many calls refresh all of them once. Keys that one call has brought
--            have one checked_at; with the same time to live they go stale together and come by one call again, so each of m such keys is 1/m of a call.
--            state: kept; missing (asked again after negative_ttl, and never fresh); failing (backed off); stopped (type or upstream paused or parked: no calls, and stale sooner or later).
-- types:     bytes_per_key and tries as counted in the last day (every answer costs, also one that is refused); until something was counted, expected_size. open_share: how much of the next 30 days
--            its exchange is open, where the rule asks for it.
-- upstreams: what the limiter allows, over all active credentials. used: [hours ago, units] for each hour that still counts for the budget. call_seconds: as measured in the last hour.
CREATE OR REPLACE FUNCTION livewell.plan_state()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_subscriptions_max CONSTANT integer := 2000000;
    c_groups_max        CONSTANT integer := 5000;
    c_types_max         CONSTANT integer := 1000;
    v_now       timestamptz := livewell.now();
    v_groups    jsonb;
    v_types     jsonb;
    v_upstreams jsonb;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'a plan is made on the primary only; this server is a replica' USING ERRCODE = 'LW001';
    END IF;
    WITH types AS MATERIALIZED (
        SELECT t.name, t.upstream, t.strategy, t.ttl, t.negative_ttl, t.keys_max, t.prefetch, t.paused_at IS NOT NULL OR t.parked_reason IS NOT NULL OR u.paused_at IS NOT NULL AS stopped
        FROM livewell.data_type t JOIN livewell.upstream u ON u.name = t.upstream ORDER BY t.name LIMIT c_types_max
    ), watched AS MATERIALIZED (
        SELECT s.data_type, s.key, s.viewers FROM livewell.watched_keys(c_subscriptions_max) s
    ), wanted AS (
        SELECT w.data_type, w.key, w.viewers FROM watched w
        UNION ALL
        -- Prefetched: nobody looks now, somebody did within a day.
        SELECT p.data_type, p.key, 0 FROM (
            SELECT l.data_type, l.key FROM types t JOIN livewell.ledger l ON l.data_type = t.name
            WHERE t.prefetch AND l.due_at IS NOT NULL AND l.wanted_at > v_now - interval '1 day' AND NOT EXISTS (SELECT FROM watched w WHERE w.data_type = l.data_type AND w.key = l.key)
            LIMIT c_subscriptions_max) p
    ), keys AS (
        SELECT t.upstream, t.name, w.viewers, t.keys_max, l.checked_at, l.ttl_override IS NOT NULL AS own, CASE WHEN t.strategy = 'scheduled' OR w.viewers = 0 THEN 1 ELSE 0 END AS lane,
               CASE WHEN t.stopped THEN 'stopped' WHEN l.retry_at > v_now THEN 'failing' WHEN l.missing THEN 'missing' ELSE 'kept' END AS state,
               extract(epoch FROM CASE WHEN l.missing THEN t.negative_ttl ELSE coalesce(l.ttl_override, t.ttl) END)::float8 AS ttl
        FROM wanted w JOIN types t ON t.name = w.data_type LEFT JOIN livewell.ledger l ON l.data_type = w.data_type AND l.key = w.key
    ), shared AS (
        SELECT k.*, 1.0::float8 / CASE WHEN k.keys_max = 1 THEN 1 WHEN k.checked_at IS NULL THEN k.keys_max
                                       ELSE least(count(*) OVER (PARTITION BY k.name, k.ttl, k.checked_at), k.keys_max) END AS calls
        FROM keys k
    ), alike AS (
        SELECT s.upstream, s.name, s.lane, s.state, s.own, count(*) AS keys, sum(s.viewers) AS viewers, sum(s.calls) AS calls, avg(s.ttl) AS ttl
        FROM shared s
        GROUP BY s.upstream, s.name, s.lane, s.state, s.own, round(s.ttl::numeric, 1 - floor(log(s.ttl::numeric))::integer), floor(ln(greatest(s.viewers, 1)) / ln(1.2))
        ORDER BY 6 DESC LIMIT c_groups_max
    )
    SELECT coalesce(jsonb_agg(jsonb_build_object('upstream', a.upstream, 'type', a.name, 'lane', a.lane, 'state', a.state, 'own_ttl', a.own, 'ttl_seconds', a.ttl,
        'keys', a.keys, 'viewers', a.viewers, 'calls', a.calls)), '[]') INTO v_groups FROM alike a;

    SELECT coalesce(jsonb_agg(jsonb_build_object('type', t.name, 'upstream', t.upstream, 'ttl_seconds', extract(epoch FROM t.ttl)::float8, 'keys_max', t.keys_max, 'strategy', t.strategy,
        'cron', t.cron, 'zone', t.zone, 'stopped', t.paused_at IS NOT NULL OR t.parked_reason IS NOT NULL, 'measured', coalesce(c.good, 0),
        'bytes_per_key', coalesce(c.bytes / nullif(c.answers, 0), livewell.expected_size(t.upstream, t.name, t.size_estimate))::float8, 'tries', coalesce(c.answers / nullif(c.good, 0), 1)::float8,
        'universe', CASE WHEN t.strategy = 'scheduled' THEN (SELECT count(*) FROM livewell.universe n WHERE n.data_type = t.name AND n.active) ELSE 0 END,
        'open_share', coalesce(o.share, 1)) ORDER BY t.name), '[]')
    INTO v_types
    FROM (SELECT * FROM livewell.data_type d ORDER BY d.name LIMIT c_types_max) t JOIN livewell.upstream u ON u.name = t.upstream
    LEFT JOIN LATERAL (
        SELECT sum(r.n)::float8 AS answers, sum(r.n) FILTER (WHERE r.outcome IN ('stored', 'corrected', 'unchanged', 'missing', 'older'))::float8 AS good,
               CASE u.counts WHEN 'wire' THEN sum(r.wire_bytes) WHEN 'decoded' THEN sum(r.decoded_bytes) ELSE greatest(sum(r.wire_bytes), sum(r.decoded_bytes)) END::float8 AS bytes
        FROM livewell.refresh_count r WHERE r.hour > v_now - interval '1 day' AND r.data_type = t.name AND r.outcome <> 'type_changed') c ON true
    LEFT JOIN LATERAL (
        SELECT sum(extract(epoch FROM least(s.closes_at, v_now + interval '30 days') - greatest(s.opens_at, v_now)))::float8 / 2592000 AS share
        FROM livewell.exchange_session s WHERE t.rule = 'session' AND s.calendar = t.calendar AND s.opens_at < v_now + interval '30 days' AND s.opens_at > v_now - interval '1 day' AND s.closes_at > v_now) o ON true;

    SELECT coalesce(jsonb_agg(jsonb_build_object('upstream', u.name, 'paused', u.paused_at IS NOT NULL, 'credentials', c.n, 'rate_calls', c.rate_calls, 'rate_seconds', l.rate_seconds,
        'permit_seconds', l.permit_seconds, 'reserve', l.reserve, 'concurrency', l.concurrency, 'call_seconds', m.seconds, 'spent', g.calls, 'budget_units', l.budget_units * c.n, 'budget_unit', l.budget_unit,
        'budget_stop', l.budget_stop, 'budget_background_stop', l.budget_background_stop, 'budget_seconds', l.budget_seconds,
        'reset_seconds', CASE WHEN l.budget_resets IS NOT NULL THEN extract(epoch FROM livewell.budget_since(l, livewell.budget_since(l, v_now) + interval '36 hours') - v_now)::float8 END,
        'used', b.used) ORDER BY u.name), '[]')
    INTO v_upstreams
    FROM (SELECT * FROM livewell.upstream n ORDER BY n.name LIMIT c_types_max) u
    LEFT JOIN livewell.limiter l ON l.name = u.name
    LEFT JOIN LATERAL (
        SELECT count(*) AS n, sum(least(l.rate_calls, k.learnt_calls)) AS rate_calls FROM livewell.limiter_credential k WHERE k.limiter = u.name AND k.active) c ON true
    LEFT JOIN LATERAL (
        SELECT sum(s.ms)::float8 / nullif(sum(s.n), 0) / 1000 AS seconds FROM livewell.stat s
        WHERE s.minute > v_now - interval '1 hour' AND s.kind = 'livewell.refresh' AND (s.queue = 'refresh.' || u.name OR starts_with(s.queue, 'refresh.' || u.name || '.'))) m ON true
    LEFT JOIN LATERAL (
        SELECT coalesce(sum(x.calls), 0) AS calls FROM (
            SELECT n.calls FROM livewell.limiter_grant n WHERE n.limiter = u.name AND n.at > v_now - l.rate_seconds * interval '1 second'
            UNION ALL
            SELECT f.calls FROM livewell.limiter_flight f WHERE f.limiter = u.name AND f.at > v_now - l.rate_seconds * interval '1 second') x) g ON true
    LEFT JOIN LATERAL (
        SELECT coalesce(jsonb_agg(jsonb_build_array(h.hours, h.units) ORDER BY h.hours DESC), '[]') AS used FROM (
            SELECT floor(extract(epoch FROM date_trunc('hour', v_now, 'UTC') - y.since) / 3600)::float8 AS hours, sum(y.units)::float8 AS units FROM livewell.limiter_usage y
            WHERE y.limiter = u.name AND l.budget_units IS NOT NULL AND y.since >= livewell.budget_since(l, v_now) GROUP BY 1) h) b ON true;

    RETURN jsonb_build_object('at', v_now, 'groups', v_groups, 'types', v_types, 'upstreams', v_upstreams,
        'cut', jsonb_array_length(v_groups) >= c_groups_max OR jsonb_array_length(v_types) >= c_types_max
               OR (SELECT count(*) FROM (SELECT b.data_type FROM livewell.subscription b LIMIT c_subscriptions_max) s) >= c_subscriptions_max);
END
$$;
COMMENT ON FUNCTION livewell.plan_state IS 'Demand by type, time to live and viewers, measured costs, and what each upstream allows: what a plan is computed from.';
REVOKE ALL ON FUNCTION livewell.plan_state FROM PUBLIC;
