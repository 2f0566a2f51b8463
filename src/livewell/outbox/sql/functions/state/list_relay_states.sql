-- Every relay, 1,000 at most, with its lease, what it holds and why its sink is away.
--
-- Called by: state_outbox. The dead are among them, for as long as nobody has buried them.
-- Index:     relay_pkey, relay_shard_pkey, event_flight_pkey.
CREATE OR REPLACE FUNCTION livewell.list_relay_states(p_now timestamptz)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'id', r.id, 'sink', s.name, 'name', r.name, 'version', r.version,
        'outside', r.token IS NOT NULL, 'started_at', r.started_at,
        'lease_left_seconds', extract(epoch FROM r.expires_at - p_now)::float8,
        'shards', h.n, 'in_flight', coalesce(cardinality(f.numbers), 0),
        'flight_seconds', CASE WHEN cardinality(f.numbers) > 0
            THEN extract(epoch FROM p_now - f.since)::float8 END,
        'batch_seconds', r.batch_seconds,
        'away_seconds', extract(epoch FROM p_now - r.away_since)::float8,
        'away_reason', r.away_reason
    ) ORDER BY s.name, r.id), '[]')
    FROM (SELECT o.* FROM livewell.relay o ORDER BY o.id LIMIT 1000) r
    JOIN livewell.event_sink s ON s.id = r.sink
    LEFT JOIN livewell.event_flight f ON f.relay = r.id
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM livewell.relay_shard o WHERE o.sink = r.sink AND o.relay = r.id
    ) h
$$;
COMMENT ON FUNCTION livewell.list_relay_states IS 'The relays of the system state, as a JSON array.';
REVOKE ALL ON FUNCTION livewell.list_relay_states FROM PUBLIC;
