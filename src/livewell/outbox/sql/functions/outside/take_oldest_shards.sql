-- Give a claimer outside free shards, those with the oldest events first, until they hold as many
-- as it may claim.
--
-- Called by: outbox_claim, which lets in one claimer at a time.
-- Index:     event_delivery_ready_idx; event_block_shard_idx.
CREATE OR REPLACE FUNCTION livewell.take_oldest_shards(
    p_sink smallint, p_relay bigint, p_limit integer, p_tenant text
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_only  CONSTANT bigint := hashtext(p_tenant);
BEGIN
    WITH waiting AS MATERIALIZED (
        SELECT h.shard, h.relay, d.n + b.n AS n, least(d.head, b.head) AS head
        FROM livewell.relay_shard h
        CROSS JOIN LATERAL (
            SELECT count(*) AS n, min(e.number) AS head
            FROM (
                SELECT r.number FROM livewell.event_delivery r
                WHERE r.sink = p_sink
                    AND r.shard = h.shard
                    AND NOT r.aside
                    AND r.tenant_hash >= coalesce(v_only, -2147483648)
                    AND r.tenant_hash <= coalesce(v_only, 2147483647)
                ORDER BY r.tenant_hash, r.number LIMIT p_limit
            ) e
        ) d
        CROSS JOIN LATERAL (
            SELECT count(*) AS n, min(k.number) AS head FROM livewell.event_block k
            WHERE k.sink = p_sink
                AND k.shard = h.shard
                AND k.retry_at <= v_now
                AND (p_tenant IS NULL OR v_only = (
                    SELECT a.tenant_hash FROM livewell.event_delivery a
                    WHERE a.sink = p_sink AND a.key_hash = k.key_hash AND a.aside
                    ORDER BY a.number LIMIT 1
                ))
        ) b
        WHERE h.sink = p_sink AND (h.relay IS NULL OR h.relay = p_relay)
    ), needed AS (
        SELECT w.shard, w.relay,
            sum(w.n) OVER (ORDER BY w.relay IS NULL, w.head, w.shard) - w.n AS before
        FROM waiting w WHERE w.n > 0
    )
    UPDATE livewell.relay_shard h
    SET relay = p_relay
    WHERE h.sink = p_sink
        AND h.relay IS NULL
        AND h.shard IN (SELECT o.shard FROM needed o WHERE o.relay IS NULL AND o.before < p_limit);
END
$$;
COMMENT ON FUNCTION livewell.take_oldest_shards IS
    'Gives a claimer outside the free shards with the oldest events.';
REVOKE ALL ON FUNCTION livewell.take_oldest_shards FROM PUBLIC;
