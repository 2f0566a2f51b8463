-- What becomes of keys whose dead letters were redriven or discarded: what is set aside goes now, in
-- order, unless another letter of the key still parks it.
--
-- Called by: redrive_dead_events, discard_dead_events, which hold the letters.
-- Index:     event_block_pkey; dead_event_parks_idx.
-- A key whose event is on its way right now is left alone: later events of it must wait, and the end
-- of that delivery drains it.
-- Keys that have no block yet get one: only through it is what was set aside found.
CREATE OR REPLACE FUNCTION livewell.release_keys(
    p_sink smallint, p_lanes bigint[], p_shards smallint[], p_numbers bigint[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    INSERT INTO livewell.event_block AS b (
        sink, key_hash, shard, state, number, since, retry_at, reason
    )
    SELECT p_sink, k.lane, k.shard,
        (CASE WHEN x.number IS NULL THEN 'draining' ELSE 'parked' END)::livewell.block_state,
        coalesce(x.number, k.number), v_now,
        CASE WHEN x.number IS NULL THEN v_now ELSE 'infinity' END, x.detail
    FROM (
        SELECT g.lane, min(g.shard) AS shard, min(g.number) AS number
        FROM unnest(p_lanes, p_shards, p_numbers) AS g (lane, shard, number)
        GROUP BY g.lane
    ) k
    LEFT JOIN LATERAL (
        SELECT d.number, d.detail FROM livewell.dead_event d
        WHERE d.sink = p_sink AND d.key_hash = k.lane AND d.parks
        ORDER BY d.number LIMIT 1
    ) x ON true
    ORDER BY k.lane
    ON CONFLICT (sink, key_hash) DO UPDATE
    SET state = excluded.state, number = excluded.number, retry_at = excluded.retry_at,
        reason = excluded.reason
    WHERE b.state <> 'sending';
END
$$;
COMMENT ON FUNCTION livewell.release_keys IS
    'Lets go what is set aside of these keys, unless another dead letter parks them.';
REVOKE ALL ON FUNCTION livewell.release_keys FROM PUBLIC;
