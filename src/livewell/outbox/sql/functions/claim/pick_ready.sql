-- The ready events of a relay's shards: a few of every tenant that has some, tenants in turns.
--
-- Called by: claim_events.
-- Index:     event_delivery_ready_idx.
-- The walk goes from shard to shard and in it from tenant to tenant, one index probe each, and
-- begins behind the last one it came to. It takes up to 256 of these places, so with more tenants
-- than that each has its turn within a known number of claims. Of a place it takes as many as is
-- its tenant's share. So a million events of one tenant cost another one batch, and no more.
-- Events whose key is blocked are set aside here, once each: no later claim reads past them.
-- A prefix of a place is taken, so the order of each key is kept.
CREATE OR REPLACE FUNCTION livewell.pick_ready(
    p_relay livewell.relay, p_shards smallint[], p_limit integer, p_tenant text
)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    c_before    CONSTANT bigint := -9223372036854775808;
    c_places    CONSTANT integer := 256;
    v_shards    CONSTANT integer := cardinality(p_shards);
    v_only      CONSTANT bigint := hashtext(p_tenant);
    v_numbers   bigint[] := '{}';
    v_blocked   bigint[];
    v_place     integer := least(p_relay.turn_place, v_shards);
    v_tenant    bigint := p_relay.turn_tenant;
    v_blocks    boolean;
    v_more      boolean;
BEGIN
    v_blocks := EXISTS (SELECT FROM livewell.event_block b WHERE b.sink = p_relay.sink);
    -- A long row of blocked events is set aside in up to twenty pages; the next claim goes on.
    FOR v_try IN 1 .. 20 LOOP
        EXIT WHEN p_limit <= cardinality(v_numbers);
        WITH RECURSIVE walk (place, tenant, found, moves, seen) AS (
            SELECT v_place, v_tenant, false, 0, 0
            UNION ALL
            SELECT CASE WHEN n.tenant IS NULL THEN w.place % v_shards + 1 ELSE w.place END,
                coalesce(n.tenant, c_before), n.tenant IS NOT NULL,
                w.moves + (n.tenant IS NULL)::integer, w.seen + (n.tenant IS NOT NULL)::integer
            FROM walk w
            LEFT JOIN LATERAL (
                SELECT d.tenant_hash::bigint AS tenant FROM livewell.event_delivery d
                WHERE d.sink = p_relay.sink
                    AND d.shard = p_shards[w.place]
                    AND NOT d.aside
                    AND d.tenant_hash > w.tenant
                    AND d.tenant_hash >= coalesce(v_only, -2147483648)
                    AND d.tenant_hash <= coalesce(v_only, 2147483647)
                ORDER BY d.tenant_hash LIMIT 1
            ) n ON true
            WHERE w.moves <= v_shards AND w.seen < c_places
        ), place AS MATERIALIZED (
            SELECT DISTINCT w.place, w.tenant::integer AS tenant FROM walk w WHERE w.found
        ), share AS (
            SELECT o.tenant,
                ceil(2.0 * p_limit / (count(*) OVER () * o.places))::integer + 1 AS each
            FROM (SELECT q.tenant, count(*) AS places FROM place q GROUP BY q.tenant) o
        ), candidate AS (
            SELECT c.number, c.key_hash, row_number() OVER (
                PARTITION BY c.tenant_hash ORDER BY c.turn, c.shard
            ) AS turn
            FROM place q
            JOIN share s ON s.tenant = q.tenant
            CROSS JOIN LATERAL (
                SELECT d.number, d.key_hash, d.tenant_hash, d.shard,
                    row_number() OVER (ORDER BY d.number) AS turn
                FROM livewell.event_delivery d
                WHERE d.sink = p_relay.sink
                    AND d.shard = p_shards[q.place]
                    AND d.tenant_hash = q.tenant
                    AND NOT d.aside
                ORDER BY d.number LIMIT least(s.each, p_limit)
            ) c
        ), chosen AS (
            SELECT c.number, v_blocks AND EXISTS (
                SELECT FROM livewell.event_block b
                WHERE b.sink = p_relay.sink AND b.key_hash = c.key_hash
            ) AS blocked
            FROM (SELECT k.* FROM candidate k ORDER BY k.turn LIMIT p_limit) c
        ), last AS (
            SELECT w.place, w.tenant, w.seen FROM walk w
            ORDER BY w.moves + w.seen DESC LIMIT 1
        )
        SELECT array_agg(c.number) FILTER (WHERE NOT c.blocked),
            array_agg(c.number) FILTER (WHERE c.blocked),
            (SELECT l.place FROM last l), (SELECT l.tenant FROM last l),
            (SELECT l.seen >= c_places FROM last l)
        INTO v_numbers, v_blocked, v_place, v_tenant, v_more
        FROM chosen c;
        v_numbers := coalesce(v_numbers, '{}');
        EXIT WHEN v_blocked IS NULL;
        UPDATE livewell.event_delivery d
        SET aside = true
        WHERE d.sink = p_relay.sink AND d.number = ANY (v_blocked);
        EXIT WHEN cardinality(v_numbers) > 0;
    END LOOP;
    -- Where all tenants had their turn there is nothing to remember.
    IF v_more THEN
        UPDATE livewell.relay r SET turn_place = v_place, turn_tenant = v_tenant
        WHERE r.id = p_relay.id;
    END IF;
    RETURN v_numbers;
END
$$;
COMMENT ON FUNCTION livewell.pick_ready IS
    'Ready events of a relay''s shards, tenants in turns; sets those of blocked keys aside.';
REVOKE ALL ON FUNCTION livewell.pick_ready FROM PUBLIC;
