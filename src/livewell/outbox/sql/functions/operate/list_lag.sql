-- The tenants of a sink that have waited longest: the first undelivered event of each.
--
-- Called by: OutboxAdmin.lag.
-- Index:     event_delivery_ready_idx by walk_places, up to 4,096 places; event_block_pkey, up to
--            4,096 keys, each by event_delivery_aside_idx; then up to 1,000 events of each tenant that
--            is shown.
-- waiting:   what is ready; what is set aside is counted by list_blocks. is_all: false if there are
--            more places than were looked at. A replay takes turns as a tenant; it has no name.
CREATE OR REPLACE FUNCTION livewell.list_lag(p_sink text, p_limit integer)
RETURNS TABLE (
    tenant text, is_replay boolean, oldest_id text, oldest_at timestamptz, waiting bigint,
    waiting_is_more boolean, is_blocked boolean, is_all boolean
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_places    CONSTANT integer := 4096;
    v_shards    CONSTANT smallint[] := ARRAY(
        SELECT i::smallint FROM generate_series(0, 63) AS i
    );
    v_sink      smallint;
BEGIN
    SELECT s.id INTO v_sink FROM livewell.event_sink s WHERE s.name = p_sink;
    RETURN QUERY
    WITH ready AS MATERIALIZED (
        SELECT w.tenant_hash, w.number, w.day, w.replay
        FROM livewell.walk_places(v_sink, v_shards, c_places) w
    ), blocked AS MATERIALIZED (
        SELECT d.tenant_hash, d.number, d.day, d.replay
        FROM (
            SELECT b.number, b.key_hash FROM livewell.event_block b
            WHERE b.sink = v_sink LIMIT c_places
        ) b
        CROSS JOIN LATERAL (
            SELECT a.* FROM livewell.event_delivery a
            WHERE a.sink = v_sink AND a.key_hash = b.key_hash AND a.number = b.number AND a.aside
            LIMIT 1
        ) d
    ), first AS (
        SELECT DISTINCT ON (o.tenant_hash) o.*
        FROM (
            SELECT r.*, false AS aside FROM ready r
            UNION ALL SELECT b.*, true FROM blocked b
        ) o
        ORDER BY o.tenant_hash, o.number
    )
    SELECT CASE WHEN NOT f.replay THEN e.tenant END, f.replay, livewell.event_id(f.number),
        e.created_at, least(n.n, 1000), n.n > 1000, f.aside,
        (SELECT count(*) < c_places FROM ready) AND (SELECT count(*) < c_places FROM blocked)
    FROM (SELECT * FROM first k ORDER BY k.number LIMIT least(greatest(p_limit, 1), 100)) f
    JOIN livewell.event e ON e.number = f.number AND e.day = f.day
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM (
            SELECT FROM livewell.event_delivery d
            WHERE d.sink = v_sink
                AND d.shard = ANY (v_shards)
                AND d.tenant_hash = f.tenant_hash
                AND NOT d.aside
            LIMIT 1001
        ) c
    ) n
    ORDER BY f.number;
END
$$;
COMMENT ON FUNCTION livewell.list_lag IS
    'The tenants of a sink that have waited longest, with the first undelivered event of each.';
REVOKE ALL ON FUNCTION livewell.list_lag FROM PUBLIC;
