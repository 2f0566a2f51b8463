-- A page of keys that wait: what blocks each, and how many events are set aside behind it.
--
-- Called by: OutboxAdmin.blocks.
-- Index:     event_block_pkey, up to 10,000 keys of a sink; event_delivery_aside_idx, up to 1,000
--            events of each key that is shown. Keyset by sink and lane.
-- p_sink:    NULL: every sink. p_after: what next said.
-- next:      after which to go on, in every row; NULL: there is nothing more. A page without a match
--            has one row of which only next is filled. lane: the key_hash of tenant and key.
-- cursor:    after which to go on from this row.
CREATE OR REPLACE FUNCTION livewell.list_blocks(
    p_sink text, p_state text, p_after text, p_limit integer
)
RETURNS TABLE (
    next text, sink text, lane bigint, state text, tenant text, key text, topic text, event_id text,
    attempt smallint, since timestamptz, retry_at timestamptz, reason text, aside bigint,
    aside_is_more boolean, shard smallint, relay bigint, cursor text
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
    v_after CONSTANT smallint := coalesce(split_part(p_after, ':', 1)::smallint, 0);
    v_lane  CONSTANT bigint := coalesce(split_part(p_after, ':', 2)::bigint, 0);
    v_sink  smallint;
BEGIN
    SELECT s.id INTO v_sink FROM livewell.event_sink s WHERE s.name = p_sink;
    RETURN QUERY
    WITH look AS MATERIALIZED (
        SELECT b.*, s.name FROM livewell.event_block b
        JOIN livewell.event_sink s ON s.id = b.sink
        WHERE (p_sink IS NULL OR b.sink = v_sink) AND (b.sink, b.key_hash) > (v_after, v_lane)
        ORDER BY b.sink, b.key_hash LIMIT c_looks
    ), found AS MATERIALIZED (
        SELECT l.* FROM look l WHERE p_state IS NULL OR l.state::text = p_state
        ORDER BY l.sink, l.key_hash LIMIT v_limit
    ), place AS (
        SELECT (
            SELECT e.sink || ':' || e.key_hash
            FROM (
                SELECT f.sink, f.key_hash FROM found f
                WHERE (SELECT count(*) FROM found) = v_limit
                UNION ALL
                SELECT l.sink, l.key_hash FROM look l
                WHERE (SELECT count(*) FROM look) = c_looks AND (SELECT count(*) FROM found) < v_limit
            ) e
            ORDER BY e.sink DESC, e.key_hash DESC LIMIT 1
        ) AS next
    )
    SELECT p.next, f.name, f.key_hash, f.state::text, e.tenant, e.key, e.topic,
        livewell.event_id(f.number), d.attempt, f.since, nullif(f.retry_at, 'infinity'), f.reason,
        least(n.n, 1000), n.n > 1000, f.shard, h.relay, f.sink || ':' || f.key_hash
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
    ORDER BY f.sink, f.key_hash;
END
$$;
COMMENT ON FUNCTION livewell.list_blocks IS
    'A page of keys that wait: the event that blocks each, and how many are set aside.';
REVOKE ALL ON FUNCTION livewell.list_blocks FROM PUBLIC;
