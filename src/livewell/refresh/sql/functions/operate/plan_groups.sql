-- Who watches how many keys with which time to live, as groups of keys that are alike.
--
-- Called by: plan_state. Reads all subscriptions, up to p_subscriptions_max.
-- A group:   watched keys of one type, alike in time to live (two digits of it) and in viewers
--            (within a fifth). calls: how many calls refresh all of them once. Keys that one call
--            has brought have one checked_at; with the same time to live they go stale together and
--            come by one call again, so each of m such keys is 1/m of a call. state: kept; missing
--            (asked again after negative_ttl, and never fresh); failing (backed off); stopped (type
--            or upstream paused or parked: no calls, and stale sooner or later).
CREATE OR REPLACE FUNCTION livewell.plan_groups(
    p_now timestamptz, p_subscriptions_max integer, p_groups_max integer, p_types_max integer)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_answer    jsonb;
BEGIN
    WITH types AS MATERIALIZED (
        SELECT t.name, t.upstream, t.strategy, t.ttl, t.negative_ttl, t.keys_max, t.prefetch,
               t.paused_at IS NOT NULL OR t.parked_reason IS NOT NULL
                   OR u.paused_at IS NOT NULL AS stopped
        FROM livewell.data_type t
        JOIN livewell.upstream u ON u.name = t.upstream ORDER BY t.name LIMIT p_types_max
    ), watched AS MATERIALIZED (
        SELECT s.data_type, s.key, s.viewers FROM livewell.watched_keys(p_subscriptions_max) s
    ), wanted AS (
        SELECT w.data_type, w.key, w.viewers FROM watched w
        UNION ALL
        -- Prefetched: nobody looks now, somebody did within a day.
        SELECT p.data_type, p.key, 0 FROM (
            SELECT l.data_type, l.key FROM types t JOIN livewell.ledger l ON l.data_type = t.name
            WHERE t.prefetch AND l.due_at IS NOT NULL AND l.wanted_at > p_now - interval '1 day'
              AND NOT EXISTS (
                  SELECT FROM watched w WHERE w.data_type = l.data_type AND w.key = l.key)
            LIMIT p_subscriptions_max) p
    ), keys AS (
        SELECT t.upstream, t.name, w.viewers, t.keys_max, l.checked_at,
               l.ttl_override IS NOT NULL AS own,
               CASE WHEN t.strategy = 'scheduled' OR w.viewers = 0 THEN 1 ELSE 0 END AS lane,
               CASE
                   WHEN t.stopped THEN 'stopped'
                   WHEN l.retry_at > p_now THEN 'failing'
                   WHEN l.missing THEN 'missing'
                   ELSE 'kept'
               END AS state,
               extract(epoch FROM CASE
                   WHEN l.missing THEN t.negative_ttl ELSE coalesce(l.ttl_override, t.ttl)
               END)::float8 AS ttl
        FROM wanted w
        JOIN types t ON t.name = w.data_type
        LEFT JOIN livewell.ledger l ON l.data_type = w.data_type AND l.key = w.key
    ), shared AS (
        SELECT k.*,
               1.0::float8 / CASE
                   WHEN k.keys_max = 1 THEN 1
                   WHEN k.checked_at IS NULL THEN k.keys_max
                   ELSE least(
                       count(*) OVER (PARTITION BY k.name, k.ttl, k.checked_at), k.keys_max)
               END AS calls
        FROM keys k
    ), alike AS (
        SELECT s.upstream, s.name, s.lane, s.state, s.own, count(*) AS keys,
               sum(s.viewers) AS viewers, sum(s.calls) AS calls, avg(s.ttl) AS ttl
        FROM shared s
        GROUP BY s.upstream, s.name, s.lane, s.state, s.own,
            round(s.ttl::numeric, 1 - floor(log(s.ttl::numeric))::integer),
            floor(ln(greatest(s.viewers, 1)) / ln(1.2))
        ORDER BY 6 DESC LIMIT p_groups_max
    )
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'upstream', a.upstream, 'type', a.name, 'lane', a.lane, 'state', a.state, 'own_ttl', a.own,
        'ttl_seconds', a.ttl,
        'keys', a.keys, 'viewers', a.viewers, 'calls', a.calls)), '[]') INTO v_answer FROM alike a;
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.plan_groups IS
    'Demand by type, time to live and viewers, as groups of watched keys.';
REVOKE ALL ON FUNCTION livewell.plan_groups FROM PUBLIC;
