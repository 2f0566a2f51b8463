-- The bound within which every tenant of a sink has its turn, for each of its relays.
--
-- Called by: OutboxAdmin.fair_share.
-- Index:     event_delivery_ready_idx by walk_places, up to 4,096 places in all.
-- claims:    a claim comes to 256 places (c_places of pick_ready), so with `places` of them every
--            tenant has had its turn after so many claims. wait_seconds: that long, at the pace of
--            the last batches. Shards that nobody has are in the row without a relay.
CREATE OR REPLACE FUNCTION livewell.fair_share(p_sink text)
RETURNS TABLE (
    relay bigint, name text, shards bigint, tenants bigint, places bigint,
    places_is_more boolean, claims bigint, batch_seconds float8, wait_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_places    CONSTANT integer := 4096;
BEGIN
    RETURN QUERY
    WITH place AS MATERIALIZED (
        SELECT s.id AS sink, w.shard, w.tenant_hash
        FROM livewell.event_sink s
        CROSS JOIN LATERAL livewell.walk_places(
            s.id, ARRAY(SELECT i::smallint FROM generate_series(0, 63) AS i), c_places
        ) w
        WHERE s.name = p_sink
    ), held AS (
        SELECT h.relay, count(DISTINCT h.shard) AS shards, count(DISTINCT p.tenant_hash) AS tenants,
            count(p.shard) AS places
        FROM livewell.event_sink s
        JOIN livewell.relay_shard h ON h.sink = s.id
        LEFT JOIN place p ON p.shard = h.shard
        WHERE s.name = p_sink
        GROUP BY h.relay
    )
    SELECT h.relay, r.name, h.shards, h.tenants, h.places,
        (SELECT count(*) >= c_places FROM place), c.claims, r.batch_seconds,
        c.claims * r.batch_seconds
    FROM held h
    CROSS JOIN LATERAL (SELECT ceil(h.places / 256.0)::bigint AS claims) c
    LEFT JOIN livewell.relay r ON r.id = h.relay
    ORDER BY h.relay NULLS LAST;
END
$$;
COMMENT ON FUNCTION livewell.fair_share IS
    'Within how many claims every tenant of a sink has its turn, for each of its relays.';
REVOKE ALL ON FUNCTION livewell.fair_share FROM PUBLIC;
