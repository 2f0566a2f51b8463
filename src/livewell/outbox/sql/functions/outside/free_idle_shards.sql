-- Let go of the shards of a claimer outside of which it holds nothing.
--
-- Called by: outbox_claim, outbox_mark.
CREATE OR REPLACE FUNCTION livewell.free_idle_shards(p_sink smallint, p_relay bigint)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $$
    UPDATE livewell.relay_shard h
    SET relay = NULL
    WHERE h.sink = p_sink
        AND h.relay = p_relay
        AND NOT EXISTS (
            SELECT FROM livewell.event_flight f
            CROSS JOIN unnest(f.numbers) AS n
            JOIN livewell.event_delivery d ON d.number = n AND d.sink = p_sink
            WHERE f.relay = p_relay AND d.shard = h.shard
        )
$$;
COMMENT ON FUNCTION livewell.free_idle_shards IS
    'Frees the shards of which a claimer outside holds nothing.';
REVOKE ALL ON FUNCTION livewell.free_idle_shards FROM PUBLIC;
