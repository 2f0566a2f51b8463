-- The events of blocked keys that may go now: one of a key whose first event failed, up to 32 of a
-- key that drains. A key of which nothing is set aside any more is no longer blocked.
--
-- Called by: claim_events.
-- Index:     event_block_due_idx; event_delivery_aside_idx.
-- p_limit: half of the batch: a sink that refuses everything must not keep what is new from being
--          tried. At most a hundred keys.
CREATE OR REPLACE FUNCTION livewell.pick_blocked(
    p_sink smallint, p_shards smallint[], p_limit integer, p_tenant text
)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_numbers   bigint[];
    v_over      bigint[];
BEGIN
    IF p_limit < 1 OR NOT EXISTS (
        SELECT FROM livewell.event_block b WHERE b.sink = p_sink AND b.retry_at <= v_now
    )
    THEN
        RETURN '{}';
    END IF;
    WITH due AS MATERIALIZED (
        SELECT b.key_hash, b.state, b.retry_at FROM livewell.event_block b
        WHERE b.sink = p_sink
            AND b.retry_at <= v_now
            AND b.shard = ANY (p_shards)
            AND (
                p_tenant IS NULL
                OR hashtext(p_tenant) = coalesce((
                    SELECT a.tenant_hash FROM livewell.event_delivery a
                    WHERE a.sink = p_sink AND a.key_hash = b.key_hash AND a.aside
                    ORDER BY a.number LIMIT 1
                ), hashtext(p_tenant))
            )
        ORDER BY b.retry_at LIMIT 100
    ), found AS MATERIALIZED (
        SELECT b.key_hash, b.retry_at, d.number, d.tenant_hash
        FROM due b
        LEFT JOIN LATERAL (
            SELECT a.number, a.tenant_hash FROM livewell.event_delivery a
            WHERE a.sink = p_sink AND a.key_hash = b.key_hash AND a.aside
            ORDER BY a.number LIMIT CASE b.state WHEN 'draining' THEN 32 ELSE 1 END
        ) d ON true
    )
    SELECT coalesce((
            SELECT array_agg(t.number)
            FROM (
                SELECT f.number FROM found f
                WHERE f.number IS NOT NULL
                    AND (p_tenant IS NULL OR f.tenant_hash = hashtext(p_tenant))
                ORDER BY f.retry_at, f.key_hash, f.number LIMIT p_limit
            ) t
        ), '{}'),
        coalesce(array_agg(f.key_hash) FILTER (WHERE f.number IS NULL), '{}')
    INTO v_numbers, v_over
    FROM found f;
    IF cardinality(v_over) > 0 THEN
        -- Locked first: a redrive may have set something aside of such a key since we looked.
        PERFORM FROM livewell.event_block b
        WHERE b.sink = p_sink AND b.key_hash = ANY (v_over) ORDER BY b.key_hash FOR UPDATE;
        DELETE FROM livewell.event_block b
        WHERE b.sink = p_sink
            AND b.key_hash = ANY (v_over)
            AND b.retry_at <= v_now
            AND NOT EXISTS (
                SELECT FROM livewell.event_delivery a
                WHERE a.sink = p_sink AND a.key_hash = b.key_hash AND a.aside
            );
    END IF;
    RETURN v_numbers;
END
$$;
COMMENT ON FUNCTION livewell.pick_blocked IS 'The events of blocked keys that may go now.';
REVOKE ALL ON FUNCTION livewell.pick_blocked FROM PUBLIC;
