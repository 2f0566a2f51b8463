-- The ready events of a relay's shards: a few of every tenant that has some, tenants in turns.
--
-- Called by: claim_events.
-- Index:     event_delivery_ready_idx.
-- p_mark:    0, or where to begin while old index entries cannot be removed, see move_mark.
-- The walk goes from shard to shard and in it from tenant to tenant, one index probe each, and
-- takes up to 256 of these places. Of a place it takes as many as is its tenant's share, of a tenant
-- the oldest. Tenants have turns: the next claim begins behind the tenant that was last, and only
-- when all of the 256 places had a turn does the walk begin behind them. So a million events of one
-- tenant cost another one batch, and no more, also where a batch is one event.
-- Events whose key is blocked are set aside here, once each: no later claim reads past them.
-- A quarter more candidates than wanted: with twice as many a claim took 5.3 µs for an event, not 4.6.
-- Blocked keys are looked up together: one by one, an exchange took 16.5 µs for an event beside a
-- hundred of them, now 7, as without any.
-- A prefix of a place is taken, so the order of each key is kept.
CREATE OR REPLACE FUNCTION livewell.pick_ready(
    p_relay livewell.relay, p_shards smallint[], p_limit integer, p_tenant text, p_mark bigint
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
    v_chunk     integer := p_limit;
    v_aside     integer := 0;
    v_numbers   bigint[];
    v_blocks    CONSTANT boolean := EXISTS (
        SELECT FROM livewell.event_block b WHERE b.sink = p_relay.sink
    );
    v_turn      livewell.relay := p_relay;      -- where the turns are now
    v_walk      record;                         -- where this walk came to
BEGIN
    v_turn.turn_place := least(p_relay.turn_place, v_shards);
    WHILE p_limit > 0 LOOP
        WITH RECURSIVE walk (place, tenant, found, moves, seen) AS (
            SELECT v_turn.turn_place::integer, v_turn.turn_tenant, false, 0, 0
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
                    AND d.number > p_mark
                ORDER BY d.tenant_hash LIMIT 1
            ) n ON true
            WHERE w.moves <= v_shards AND w.seen < c_places
        ), place AS MATERIALIZED (
            SELECT DISTINCT w.place, w.tenant::integer AS tenant FROM walk w WHERE w.found
        ), share AS (
            SELECT o.tenant,
                ceil(1.25 * v_chunk / (count(*) OVER () * o.places))::integer + 1 AS each
            FROM (SELECT q.tenant, count(*) AS places FROM place q GROUP BY q.tenant) o
        ), candidate AS (
            SELECT c.number, c.key_hash, q.tenant,
                row_number() OVER (PARTITION BY q.tenant ORDER BY c.number) AS turn
            FROM place q
            JOIN share s ON s.tenant = q.tenant
            CROSS JOIN LATERAL (
                SELECT d.number, d.key_hash FROM livewell.event_delivery d
                WHERE d.sink = p_relay.sink
                    AND d.shard = p_shards[q.place]
                    AND d.tenant_hash = q.tenant
                    AND d.number > p_mark
                    AND NOT d.aside
                ORDER BY d.number LIMIT least(s.each, v_chunk)
            ) c
        ), line AS MATERIALIZED (
            SELECT c.*, row_number() OVER (
                ORDER BY c.turn, c.tenant <= v_turn.turn_last, c.tenant
            ) AS position
            FROM candidate c
        ), chosen AS (
            SELECT k.number, k.position, v_blocks AND k.key_hash IN (
                SELECT b.key_hash FROM livewell.event_block b
                WHERE b.sink = p_relay.sink
                    AND b.key_hash = ANY (
                        ARRAY(SELECT i.key_hash FROM line i WHERE i.position <= v_chunk)
                    )
            ) AS blocked
            FROM line k WHERE k.position <= v_chunk
        )
        SELECT coalesce(array_agg(c.number ORDER BY c.position) FILTER (WHERE NOT c.blocked), '{}') AS good,
            coalesce(array_agg(c.number) FILTER (WHERE c.blocked), '{}') AS bad,
            (SELECT k.tenant FROM line k WHERE k.position <= v_chunk ORDER BY k.position DESC LIMIT 1) AS last,
            (SELECT count(*) > v_chunk FROM line) AS cut,
            EXISTS (
                SELECT FROM line k
                WHERE k.position > v_chunk AND k.turn = 1 AND k.tenant > v_turn.turn_last
            ) AS waits,
            (SELECT w.place FROM walk w ORDER BY w.moves + w.seen DESC LIMIT 1) AS place,
            (SELECT w.tenant FROM walk w ORDER BY w.moves + w.seen DESC LIMIT 1) AS tenant,
            (SELECT max(w.seen) >= c_places FROM walk w) AS more
        INTO v_walk
        FROM chosen c;
        v_numbers := v_walk.good[1 : p_limit];
        IF v_walk.more AND NOT v_walk.waits THEN
            v_turn.turn_place := v_walk.place;
            v_turn.turn_tenant := v_walk.tenant;
        END IF;
        v_turn.turn_last := CASE WHEN v_walk.waits OR (v_walk.cut AND NOT v_walk.more)
            THEN v_walk.last ELSE c_before END;
        EXIT WHEN cardinality(v_walk.bad) = 0;
        UPDATE livewell.event_delivery d
        SET aside = true
        WHERE d.sink = p_relay.sink AND d.number = ANY (v_walk.bad);
        -- On through what is blocked, in larger steps, but not for ever in one call.
        v_aside := v_aside + cardinality(v_walk.bad);
        EXIT WHEN cardinality(v_numbers) > 0 OR v_aside >= 20000;
        v_chunk := greatest(p_limit, 2000);
    END LOOP;
    IF (v_turn.turn_place, v_turn.turn_tenant, v_turn.turn_last)
        IS DISTINCT FROM (p_relay.turn_place, p_relay.turn_tenant, p_relay.turn_last)
    THEN
        UPDATE livewell.relay r
        SET turn_place = v_turn.turn_place, turn_tenant = v_turn.turn_tenant,
            turn_last = v_turn.turn_last
        WHERE r.id = p_relay.id;
    END IF;
    RETURN coalesce(v_numbers, '{}');
END
$$;
COMMENT ON FUNCTION livewell.pick_ready IS
    'Ready events of a relay''s shards, tenants in turns; sets those of blocked keys aside.';
REVOKE ALL ON FUNCTION livewell.pick_ready FROM PUBLIC;
