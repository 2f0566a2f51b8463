-- Make dead letters of events. Of a topic that parks, the later events of the key wait for a
-- person; otherwise they go on, and the letter says that the order was broken.
--
-- Called by: fail_events, free_shards.
CREATE OR REPLACE FUNCTION livewell.bury_events(
    p_sink smallint, p_numbers bigint[], p_reasons text[], p_details text[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    WITH given AS (
        SELECT g.number, g.reason, g.detail
        FROM unnest(p_numbers, p_reasons, p_details) AS g (number, reason, detail)
    ), gone AS (
        DELETE FROM livewell.event_delivery d
        WHERE d.sink = p_sink AND d.number = ANY (p_numbers)
        RETURNING d.*
    ), letter AS (
        INSERT INTO livewell.dead_event (
            number, sink, day, shard, key_hash, tenant_hash, attempt, lost, died_at, topic, parks,
            replay, reason, detail
        )
        SELECT d.number, d.sink, d.day, d.shard, d.key_hash, d.tenant_hash, d.attempt, d.lost,
            v_now, e.topic, t.on_dead = 'park' AND e.key IS NOT NULL AND s.ordered, d.replay,
            g.reason, livewell.redact(left(g.detail, 500))
        FROM gone d
        JOIN given g ON g.number = d.number
        JOIN livewell.event e ON e.number = d.number AND e.day = d.day
        JOIN livewell.event_topic t ON t.name = e.topic
        JOIN livewell.event_sink s ON s.id = d.sink
        ON CONFLICT (number, sink) DO UPDATE
        SET died_at = excluded.died_at, attempt = excluded.attempt, lost = excluded.lost,
            reason = excluded.reason, detail = excluded.detail, parks = excluded.parks,
            replay = excluded.replay
        RETURNING number, key_hash, shard, parks, detail
    )
    INSERT INTO livewell.event_block AS b (
        sink, key_hash, shard, state, number, since, retry_at, reason
    )
    SELECT DISTINCT ON (l.key_hash)
        p_sink, l.key_hash, l.shard,
        (CASE WHEN l.parks THEN 'parked' ELSE 'draining' END)::livewell.block_state,
        l.number, v_now, CASE WHEN l.parks THEN 'infinity' ELSE v_now END, l.detail
    FROM letter l
    ORDER BY l.key_hash, l.parks DESC, l.number
    ON CONFLICT (sink, key_hash) DO UPDATE
    SET state = excluded.state, number = excluded.number, retry_at = excluded.retry_at,
        reason = excluded.reason
    WHERE b.state <> 'parked';      -- a parked key stays with the first event that parked it
END
$$;
COMMENT ON FUNCTION livewell.bury_events IS
    'Makes dead letters of events, and parks their keys where the topic says so.';
REVOKE ALL ON FUNCTION livewell.bury_events FROM PUBLIC;
