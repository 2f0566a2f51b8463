-- A page of keys that wait: what blocks each, and how many events are set aside behind it.
--
-- Called by: OutboxAdmin.blocks.
-- Index:     event_block_pkey, up to 10,000 keys of a sink; event_delivery_aside_idx, up to 1,000
--            events of each key that is shown. Keyset by lane (key_hash).
-- next:      the lane after which to go on, in every row; NULL: there is nothing more. A page without
--            a match has one row of which only next is filled.
CREATE OR REPLACE FUNCTION livewell.list_blocks(
    p_sink text, p_state text, p_after bigint, p_limit integer
)
RETURNS TABLE (
    next bigint, lane bigint, state text, tenant text, key text, topic text, event_id text,
    attempt smallint, since timestamptz, retry_at timestamptz, reason text, aside bigint,
    aside_is_more boolean, shard smallint, relay bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_looks CONSTANT integer := 10000;
    v_limit CONSTANT integer := least(greatest(p_limit, 1), 100);
BEGIN
    RETURN QUERY
    WITH look AS MATERIALIZED (
        SELECT b.* FROM livewell.event_block b
        JOIN livewell.event_sink s ON s.id = b.sink
        WHERE s.name = p_sink AND (p_after IS NULL OR b.key_hash > p_after)
        ORDER BY b.key_hash LIMIT c_looks
    ), found AS MATERIALIZED (
        SELECT l.* FROM look l WHERE p_state IS NULL OR l.state::text = p_state
        ORDER BY l.key_hash LIMIT v_limit
    ), place AS (
        SELECT CASE
            WHEN (SELECT count(*) FROM found) = v_limit THEN (SELECT max(f.key_hash) FROM found f)
            WHEN (SELECT count(*) FROM look) = c_looks THEN (SELECT max(l.key_hash) FROM look l)
        END AS next
    )
    SELECT p.next, f.key_hash, f.state::text, e.tenant, e.key, e.topic,
        livewell.event_id(f.number), d.attempt, f.since, nullif(f.retry_at, 'infinity'), f.reason,
        least(n.n, 1000), n.n > 1000, f.shard, h.relay
    FROM place p
    LEFT JOIN found f ON true
    LEFT JOIN livewell.event e ON e.number = f.number
    LEFT JOIN livewell.event_delivery d ON d.number = f.number AND d.sink = f.sink
    LEFT JOIN livewell.relay_shard h ON h.sink = f.sink AND h.shard = f.shard
    LEFT JOIN LATERAL (
        SELECT count(*) AS n FROM (
            SELECT FROM livewell.event_delivery a
            WHERE a.sink = f.sink AND a.key_hash = f.key_hash AND a.aside AND a.number <> f.number
            LIMIT 1001
        ) c
    ) n ON true
    ORDER BY f.key_hash;
END
$$;
COMMENT ON FUNCTION livewell.list_blocks IS
    'A page of keys that wait: the event that blocks each, and how many are set aside.';
REVOKE ALL ON FUNCTION livewell.list_blocks FROM PUBLIC;
