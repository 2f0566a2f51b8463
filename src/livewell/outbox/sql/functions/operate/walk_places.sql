-- The places of some shards at which something is ready: shard and tenant, with the first event of
-- each. This is the walk that pick_ready makes, without its turns.
--
-- Called by: list_lag, list_sinks, fair_share, why_event.
-- Index:     event_delivery_ready_idx, one probe for each place and each shard. p_most bounds them.
CREATE OR REPLACE FUNCTION livewell.walk_places(
    p_sink smallint, p_shards smallint[], p_most integer
)
RETURNS TABLE (shard smallint, tenant_hash integer, number bigint, day date, replay boolean)
LANGUAGE sql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
    WITH RECURSIVE walk (place, shard, tenant_hash, number, day, replay, steps) AS (
        SELECT 1, NULL::smallint, -2147483649::bigint, NULL::bigint, NULL::date, false, 0
        UNION ALL
        SELECT CASE WHEN n.number IS NULL THEN w.place + 1 ELSE w.place END,
            n.shard, coalesce(n.tenant_hash, -2147483649), n.number, n.day, n.replay,
            w.steps + 1
        FROM walk w
        LEFT JOIN LATERAL (
            SELECT d.shard, d.tenant_hash::bigint, d.number, d.day, d.replay
            FROM livewell.event_delivery d
            WHERE d.sink = p_sink
                AND d.shard = p_shards[w.place]
                AND NOT d.aside
                AND d.tenant_hash > w.tenant_hash
            ORDER BY d.tenant_hash, d.number LIMIT 1
        ) n ON true
        WHERE w.place <= cardinality(p_shards) AND w.steps < p_most + cardinality(p_shards)
    )
    SELECT w.shard, w.tenant_hash::integer, w.number, w.day, w.replay
    FROM walk w WHERE w.number IS NOT NULL
$$;
COMMENT ON FUNCTION livewell.walk_places IS
    'Shards and tenants of a sink at which something is ready, with the first event of each.';
REVOKE ALL ON FUNCTION livewell.walk_places FROM PUBLIC;
