-- The oldest undelivered event of each tenant at each sink, as far as a bounded look sees.
--
-- Called by: sample_outbox, rule_outbox_late.
-- Index:     event_delivery_pkey, event_delivery_ready_idx, event_delivery_aside_idx,
--            event_block_due_idx.
-- p_rows:    how many deliveries are read: of all, the oldest; of each sink, as they stand in the
--            index. More of a sink than that: the first of each of its shards besides.
-- whole:     the oldest of these is the oldest of the sink. Otherwise there may be an older one: a
--            second sink is far behind, and this one has more waiting than is read.
-- Not among them: what waits behind a dead letter (parked), for a person decides about it; and
-- replays, which are as old as their events.
-- Why not the smallest number of a sink: no index has it, and one more would cost every emission.
CREATE OR REPLACE FUNCTION livewell.list_sink_heads(p_rows integer DEFAULT 2000)
RETURNS TABLE (sink smallint, tenant_hash integer, number bigint, day date, whole boolean)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH target AS MATERIALIZED (
        SELECT s.id FROM livewell.event_sink s ORDER BY s.id LIMIT 100
    ), oldest AS MATERIALIZED (
        SELECT d.sink, d.key_hash, d.tenant_hash, d.number, d.day, d.aside, d.replay
        FROM livewell.event_delivery d
        ORDER BY d.number LIMIT p_rows
    ), ready AS MATERIALIZED (
        SELECT t.id AS sink, r.tenant_hash, r.number, r.day, r.replay
        FROM target t
        CROSS JOIN LATERAL (
            SELECT d.tenant_hash, d.number, d.day, d.replay FROM livewell.event_delivery d
            WHERE d.sink = t.id AND NOT d.aside
            ORDER BY d.shard, d.tenant_hash, d.number LIMIT p_rows
        ) r
    ), block AS MATERIALIZED (
        -- Parked keys have no time, and neither have those whose event is on its way.
        SELECT t.id AS sink, b.key_hash
        FROM target t
        CROSS JOIN LATERAL (
            SELECT k.key_hash FROM livewell.event_block k
            WHERE k.sink = t.id AND k.retry_at < 'infinity'
            ORDER BY k.retry_at LIMIT p_rows / 2
        ) b
    ), cut AS MATERIALIZED (
        -- Of these sinks not everything was read.
        SELECT r.sink FROM ready r GROUP BY r.sink HAVING count(*) >= p_rows
        UNION
        SELECT b.sink FROM block b GROUP BY b.sink HAVING count(*) >= p_rows / 2
    ), head AS (
        SELECT o.sink, o.tenant_hash, o.number, o.day, true AS oldest
        FROM oldest o
        LEFT JOIN LATERAL (
            -- LIMIT: one probe each, and no hash of all blocks.
            SELECT true AS is_parked FROM livewell.event_block k
            WHERE k.sink = o.sink AND k.key_hash = o.key_hash AND k.state = 'parked' LIMIT 1
        ) k ON o.aside
        WHERE NOT o.replay AND k.is_parked IS NULL
        UNION ALL
        SELECT r.sink, r.tenant_hash, r.number, r.day, false FROM ready r WHERE NOT r.replay
        UNION ALL
        SELECT b.sink, a.tenant_hash, a.number, a.day, false
        FROM block b
        CROSS JOIN LATERAL (
            SELECT d.tenant_hash, d.number, d.day FROM livewell.event_delivery d
            WHERE d.sink = b.sink AND d.key_hash = b.key_hash AND d.aside AND NOT d.replay
            ORDER BY d.number LIMIT 1
        ) a
        UNION ALL
        SELECT c.sink, f.tenant_hash, f.number, f.day, false
        FROM cut c
        CROSS JOIN generate_series(0, 63) AS i (shard)
        CROSS JOIN LATERAL (
            SELECT d.tenant_hash, d.number, d.day FROM livewell.event_delivery d
            WHERE d.sink = c.sink
                AND d.shard = i.shard::smallint
                AND NOT d.aside
                AND NOT d.replay
            ORDER BY d.tenant_hash, d.number LIMIT 1
        ) f
    ), first AS (
        SELECT DISTINCT ON (h.sink, h.tenant_hash) h.sink, h.tenant_hash, h.number, h.day
        FROM head h
        ORDER BY h.sink, h.tenant_hash, h.number
    )
    SELECT f.sink, f.tenant_hash, f.number, f.day,
        f.sink NOT IN (SELECT c.sink FROM cut c)
            OR f.sink IN (SELECT h.sink FROM head h WHERE h.oldest)
    FROM first f;
END
$$;
COMMENT ON FUNCTION livewell.list_sink_heads IS
    'The oldest undelivered event of each tenant at each sink, from a bounded number of rows.';
REVOKE ALL ON FUNCTION livewell.list_sink_heads FROM PUBLIC;
