-- The living relays of a sink in one row: how many, what they hold, whether all of them find the
-- sink away.
--
-- Called by: describe_sinks, rule_sink_away, rule_outbox_late.
-- Index:     relay_sink_idx, relay_shard_pkey, event_flight_pkey.
-- away_since: of the first one; one that was begun again a moment ago does not make it shorter.
CREATE OR REPLACE FUNCTION livewell.describe_sink_relays(
    p_sink smallint,
    p_now timestamptz,
    OUT n bigint,
    OUT shards bigint,
    OUT in_flight bigint,
    OUT batch_seconds float8,
    OUT away_since timestamptz,
    OUT away_reason text
)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT count(*), sum(h.n)::bigint, sum(cardinality(f.numbers))::bigint, max(r.batch_seconds),
        CASE WHEN bool_and(r.away_since IS NOT NULL) THEN min(r.away_since) END,
        CASE WHEN bool_and(r.away_since IS NOT NULL)
            THEN (array_agg(r.away_reason ORDER BY r.away_since))[1]
        END
    FROM livewell.relay r
    LEFT JOIN livewell.event_flight f ON f.relay = r.id
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM livewell.relay_shard o WHERE o.sink = p_sink AND o.relay = r.id
    ) h
    WHERE r.sink = p_sink AND r.expires_at > p_now
$$;
COMMENT ON FUNCTION livewell.describe_sink_relays IS
    'The living relays of a sink in one row, and since when none of them reaches it.';
REVOKE ALL ON FUNCTION livewell.describe_sink_relays FROM PUBLIC;
