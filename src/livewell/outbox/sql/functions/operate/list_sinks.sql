-- Every sink, or one: its policy, what waits for it, what blocks it, and who delivers to it.
--
-- Called by: OutboxAdmin.sinks, OutboxAdmin.stats.
-- Index:     event_delivery_ready_idx, event_delivery_aside_idx, event_block_pkey,
--            dead_event_group_idx, each up to 10,000 rows of a sink; event_delivery_pkey, 10,000
--            rows, and walk_places for a sink that has none of these: there oldest_at is of the
--            places that were walked.
-- A count of 10,000 with *_is_more means: more than that. delivered and failed: of the last five
-- minutes. away_since: since when no relay of it can send.
CREATE OR REPLACE FUNCTION livewell.list_sinks(p_sink text DEFAULT NULL)
RETURNS TABLE (
    name text, kind text, topics text[], ordered boolean, outside boolean, attempts smallint,
    batch_max smallint, backoff_base_seconds float8, backoff_cap_seconds float8,
    deadline_seconds float8, created_at timestamptz, declared_at timestamptz,
    paused_at timestamptz, waiting bigint, waiting_is_more boolean, aside bigint,
    oldest_at timestamptz, oldest_id text, in_flight bigint, blocked bigint, parked bigint,
    blocks_is_more boolean, dead bigint, dead_is_more boolean, relays bigint, shards bigint,
    away_since timestamptz, away_reason text, delivered bigint, failed bigint, replays bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    WITH look AS MATERIALIZED (
        SELECT d.sink, d.number, d.day FROM livewell.event_delivery d ORDER BY d.number LIMIT 10000
    ), head AS (
        SELECT DISTINCT ON (l.sink) l.sink, l.number, l.day FROM look l ORDER BY l.sink, l.number
    )
    SELECT s.name, s.kind, s.topics, s.ordered, s.outside, s.attempts, s.batch_max,
        s.backoff_base_seconds, s.backoff_cap_seconds, s.deadline_seconds, s.created_at,
        s.declared_at, s.paused_at, least(r.n + a.n, 10000), r.n + a.n > 10000, least(a.n, 10000),
        e.created_at, livewell.event_id(o.number), coalesce(g.in_flight, 0), b.blocked, b.parked,
        b.n > 10000, least(x.n, 10000), x.n > 10000, coalesce(g.relays, 0), h.n, g.away_since,
        g.away_reason, t.delivered, t.failed, y.n
    FROM livewell.event_sink s
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM (
            SELECT FROM livewell.event_delivery d WHERE d.sink = s.id AND NOT d.aside LIMIT 10001
        ) c
    ) r
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM (
            SELECT FROM livewell.event_delivery d WHERE d.sink = s.id AND d.aside LIMIT 10001
        ) c
    ) a
    LEFT JOIN head o1 ON o1.sink = s.id
    LEFT JOIN LATERAL (
        SELECT p.number, p.day
        FROM livewell.walk_places(
            s.id, ARRAY(SELECT i::smallint FROM generate_series(0, 63) AS i), 1024
        ) p
        WHERE o1.number IS NULL AND r.n > 0
        ORDER BY p.number LIMIT 1
    ) o2 ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(o1.number, o2.number) AS number, coalesce(o1.day, o2.day) AS day
    ) o
    LEFT JOIN livewell.event e ON e.number = o.number AND e.day = o.day
    LEFT JOIN LATERAL (
        SELECT count(*) AS relays, sum(coalesce(cardinality(f.numbers), 0)) AS in_flight,
            CASE WHEN bool_and(k.away_since IS NOT NULL) THEN min(k.away_since) END AS away_since,
            CASE WHEN bool_and(k.away_since IS NOT NULL) THEN max(k.away_reason) END AS away_reason
        FROM livewell.relay k
        LEFT JOIN livewell.event_flight f ON f.relay = k.id
        WHERE k.sink = s.id AND k.expires_at > v_now
    ) g ON true
    CROSS JOIN LATERAL (
        SELECT count(*) AS n, count(*) FILTER (WHERE c.state <> 'parked') AS blocked,
            count(*) FILTER (WHERE c.state = 'parked') AS parked
        FROM (SELECT k.state FROM livewell.event_block k WHERE k.sink = s.id LIMIT 10001) c
    ) b
    CROSS JOIN LATERAL (
        SELECT count(*) AS n
        FROM (SELECT FROM livewell.dead_event d WHERE d.sink = s.id LIMIT 10001) c
    ) x
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM livewell.relay_shard k
        WHERE k.sink = s.id AND k.relay IS NOT NULL
    ) h
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(k.n) FILTER (WHERE k.outcome = 'delivered'), 0)::bigint AS delivered,
            coalesce(
                sum(k.n) FILTER (WHERE k.outcome NOT IN ('delivered', 'lost_lease')), 0
            )::bigint AS failed
        FROM livewell.event_stat k
        WHERE k.sink = s.id AND k.minute > v_now - interval '5 minutes'
    ) t
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM livewell.event_replay k
        WHERE k.sink = s.id AND k.state = 'running'
    ) y
    WHERE p_sink IS NULL OR s.name = p_sink
    ORDER BY s.name LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_sinks IS
    'Every sink with its policy, what waits, what blocks it, and who delivers to it.';
REVOKE ALL ON FUNCTION livewell.list_sinks FROM PUBLIC;
