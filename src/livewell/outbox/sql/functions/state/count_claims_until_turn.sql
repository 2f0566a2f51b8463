-- After how many claims every tenant that waits at a sink has had its turn: the bound of fairness
-- that the sink holds now.
--
-- Called by: sample_outbox.
-- Index:     event_delivery_ready_idx, one probe per tenant of four shards, 1,000 at most.
-- A claim walks 256 places, a place being a tenant in a shard, and when every tenant in them has had
-- its turn the next one goes on behind them (pick_ready). So the bound is the places of a relay's
-- shards by 256, times the claims that the tenants of 256 places need: one, unless a batch has fewer
-- events than they are. A batch has as many as one that is on its way now, or batch_max.
-- The tenants of the first four shards that have any are walked, and stand for those of the others:
-- keys go to shards by their hash.
-- whole: false if a shard has more tenants than were walked; then it is more claims than that.
CREATE OR REPLACE FUNCTION livewell.count_claims_until_turn(
    p_sink smallint, OUT claims integer, OUT whole boolean
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    c_places    CONSTANT integer := 256;
    c_tenants   CONSTANT integer := 250;
    v_shards    float8;
    v_batch     float8;
    v_walked    float8;     -- shards
    v_most      float8;     -- tenants of one shard
    v_all       float8;     -- tenants of all that were walked
BEGIN
    SELECT coalesce(max(o.n), 64) INTO v_shards
    FROM (
        SELECT count(*) AS n FROM livewell.relay_shard h
        WHERE h.sink = p_sink AND h.relay IS NOT NULL GROUP BY h.relay
    ) o;
    SELECT least(s.batch_max, nullif(max(cardinality(f.numbers)), 0)) INTO v_batch
    FROM livewell.event_sink s
    LEFT JOIN livewell.relay r ON r.sink = s.id
    LEFT JOIN livewell.event_flight f ON f.relay = r.id
    WHERE s.id = p_sink
    GROUP BY s.batch_max;
    WITH RECURSIVE busy AS (
        SELECT i.shard FROM generate_series(0, 63) AS i (shard)
        WHERE EXISTS (
            SELECT FROM livewell.event_delivery d
            WHERE d.sink = p_sink AND d.shard = i.shard::smallint AND NOT d.aside
        )
        ORDER BY i.shard LIMIT 4
    ), walk (shard, tenant, seen) AS (
        SELECT b.shard::smallint, -2147483649::bigint, 0 FROM busy b
        UNION ALL
        SELECT w.shard, n.tenant, w.seen + 1
        FROM walk w
        CROSS JOIN LATERAL (
            SELECT d.tenant_hash::bigint AS tenant FROM livewell.event_delivery d
            WHERE d.sink = p_sink
                AND d.shard = w.shard
                AND NOT d.aside
                AND d.tenant_hash > w.tenant
            ORDER BY d.tenant_hash LIMIT 1
        ) n
        WHERE w.seen < c_tenants
    )
    SELECT count(DISTINCT w.shard), max(w.seen), count(DISTINCT w.tenant) - 1
    INTO v_walked, v_most, v_all
    FROM walk w;
    IF v_walked = 0 THEN
        claims := 1;
        whole := true;
        RETURN;
    END IF;
    claims := greatest(1, ceil(v_most * v_shards / c_places))::integer * ceil(
        least(
            c_places, v_most * v_shards,
            CASE WHEN v_all > v_most THEN v_all * v_shards / v_walked ELSE v_most END
        ) / greatest(v_batch, 1)
    )::integer;
    whole := v_most < c_tenants;
END
$$;
COMMENT ON FUNCTION livewell.count_claims_until_turn IS
    'After how many claims every waiting tenant of a sink has had its turn.';
REVOKE ALL ON FUNCTION livewell.count_claims_until_turn FROM PUBLIC;
