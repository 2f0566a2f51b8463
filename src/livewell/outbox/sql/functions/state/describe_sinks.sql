-- Every sink, 100 at most by name, in the form of the system state.
--
-- Called by: state_outbox, with its planner settings. p_sample: as sample_outbox answers.
-- Index:     event_delivery_pkey, event_delivery_ready_idx, event_block_due_idx, relay_sink_idx,
--            relay_shard_pkey, event_stat_pkey.
-- oldest_seconds: how long the oldest event waits that is neither a replay nor parked. The sample
--            says which it is; if it has left since, how long it had waited then. oldest_how:
--            exact, or at_least (list_sink_heads).
-- blocked, parked: keys, 10,000 and 1,000 at most.
-- away:      relays live, and none of them reaches the sink.
-- Pace:      over five minutes, by what the relays count; leases lost in the last hour.
CREATE OR REPLACE FUNCTION livewell.describe_sinks(p_sample jsonb, p_now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN coalesce((
        SELECT jsonb_agg(jsonb_build_object(
            'name', s.name, 'kind', s.kind, 'outside', s.outside, 'ordered', s.ordered,
            'topics', to_jsonb(s.topics), 'attempts', s.attempts, 'paused_at', s.paused_at,
            'declared_at', s.declared_at,
            'waiting', coalesce(w.ready, 0), 'aside', coalesce(w.aside, 0),
            'has_waiting', EXISTS (
                SELECT FROM livewell.event_delivery d WHERE d.sink = s.id AND NOT d.aside
            ),
            'oldest_seconds', CASE
                WHEN EXISTS (
                    SELECT FROM livewell.event_delivery d
                    WHERE d.number = h.number AND d.sink = s.id
                )
                    THEN extract(epoch FROM p_now - h.created_at)::float8
                WHEN h.number IS NOT NULL
                    THEN extract(epoch FROM (p_sample ->> 'at')::timestamptz - h.created_at)::float8
            END,
            'oldest_how', CASE WHEN h.whole THEN 'exact' WHEN NOT h.whole THEN 'at_least' END,
            'blocked', b.blocked, 'parked', b.parked,
            'dead', coalesce(dead.n, 0), 'dead_reasons', coalesce(dead.reasons, '{}'),
            'relays', r.n, 'shards', coalesce(r.shards, 0), 'in_flight', coalesce(r.in_flight, 0),
            'batch_seconds', r.batch_seconds,
            'away_since', r.away_since,
            'away_seconds', extract(epoch FROM p_now - r.away_since)::float8,
            'away_reason', r.away_reason,
            'delivered_per_minute', coalesce(t.delivered, 0)::float8 / 5,
            'other_per_minute', coalesce(t.other, 0)::float8 / 5,
            'lost_leases', coalesce(t.lost_leases, 0),
            'claims_until_turn', coalesce(u.claims, 1),
            'claims_until_turn_how', CASE WHEN u.whole THEN 'exact' ELSE 'at_least' END
        ) ORDER BY s.name)
        FROM (SELECT o.* FROM livewell.event_sink o ORDER BY o.id LIMIT 100) s
        LEFT JOIN LATERAL (
            SELECT (c ->> 1)::bigint AS ready, (c ->> 2)::bigint AS aside
            FROM jsonb_array_elements(p_sample -> 'waiting') AS c WHERE (c ->> 0)::smallint = s.id
        ) w ON true
        LEFT JOIN LATERAL (
            SELECT (c ->> 1)::bigint AS number, (c ->> 2)::timestamptz AS created_at,
                (c ->> 3)::boolean AS whole
            FROM jsonb_array_elements(p_sample -> 'heads') AS c WHERE (c ->> 0)::smallint = s.id
        ) h ON true
        LEFT JOIN LATERAL (
            SELECT sum((c ->> 2)::bigint) AS n,
                jsonb_object_agg(c ->> 1, (c ->> 2)::bigint) AS reasons
            FROM jsonb_array_elements(p_sample -> 'dead') AS c WHERE (c ->> 0)::smallint = s.id
        ) dead ON true
        LEFT JOIN LATERAL (
            SELECT (c ->> 1)::integer AS claims, (c ->> 2)::boolean AS whole
            FROM jsonb_array_elements(p_sample -> 'turns') AS c WHERE (c ->> 0)::smallint = s.id
        ) u ON true
        CROSS JOIN LATERAL (
            SELECT (
                SELECT count(*)
                FROM (SELECT FROM livewell.event_block k WHERE k.sink = s.id LIMIT 10000) x
            ) AS blocked, (
                SELECT count(*)
                FROM (
                    SELECT FROM livewell.event_block k
                    WHERE k.sink = s.id AND k.retry_at = 'infinity' AND k.state = 'parked'
                    LIMIT 1000
                ) x
            ) AS parked
        ) b
        CROSS JOIN LATERAL livewell.describe_sink_relays(s.id, p_now) r
        CROSS JOIN LATERAL (
            SELECT sum(o.n) FILTER (WHERE o.outcome = 'delivered' AND o.lately) AS delivered,
                sum(o.n) FILTER (
                    WHERE o.outcome IN ('refused', 'failed', 'unknown') AND o.lately
                ) AS other,
                sum(o.n) FILTER (WHERE o.outcome = 'lost_lease') AS lost_leases
            FROM (
                SELECT e.n, e.outcome, e.minute > p_now - interval '5 minutes' AS lately
                FROM livewell.event_stat e
                WHERE e.sink = s.id AND e.minute > p_now - interval '1 hour'
            ) o
        ) t
    ), '[]');
END
$$;
COMMENT ON FUNCTION livewell.describe_sinks IS 'The sinks of the system state, as a JSON array.';
REVOKE ALL ON FUNCTION livewell.describe_sinks FROM PUBLIC;
