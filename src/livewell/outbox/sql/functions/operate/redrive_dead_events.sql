-- Give dead events another life: attempts and losses at zero, in front of what waits behind them.
--
-- Called by: OutboxAdmin.redrive.
-- p_sink:    only letters of this sink; NULL: of every sink.
-- Index:     dead_event_pkey.
-- It is put back as set aside, and its key drains: so it goes before every later event of the key
-- that is not delivered yet. Answer: how many letters went.
CREATE OR REPLACE FUNCTION livewell.redrive_dead_events(p_sink text, p_numbers bigint[])
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_sink      smallint;
    v_numbers   bigint[];
    v_lanes     bigint[];
    v_shards    smallint[];
    v_n         bigint := 0;
BEGIN
    FOR v_sink IN
        SELECT s.id FROM livewell.event_sink s
        WHERE p_sink IS NULL OR s.name = p_sink ORDER BY s.id
    LOOP
        v_numbers := ARRAY(
            SELECT d.number FROM livewell.dead_event d
            WHERE d.sink = v_sink AND d.number = ANY (p_numbers)
            ORDER BY d.number FOR UPDATE SKIP LOCKED
        );
        CONTINUE WHEN cardinality(v_numbers) = 0;
        PERFORM livewell.hold_relays(v_sink);
        v_n := v_n + cardinality(v_numbers);
        WITH letter AS (
            DELETE FROM livewell.dead_event d
            WHERE d.sink = v_sink AND d.number = ANY (v_numbers)
            RETURNING d.*
        ), kept AS (
            INSERT INTO livewell.event_delivery (
                number, key_hash, day, tenant_hash, sink, shard, aside, replay
            )
            SELECT l.number, l.key_hash, l.day, l.tenant_hash, l.sink, l.shard, true, l.replay
            FROM letter l ORDER BY l.number
            ON CONFLICT (number, sink) DO NOTHING
        )
        SELECT array_agg(l.key_hash), array_agg(l.shard), array_agg(l.number)
        INTO v_lanes, v_shards, v_numbers
        FROM letter l;
        PERFORM livewell.release_keys(v_sink, v_lanes, v_shards, v_numbers);
    END LOOP;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.redrive_dead_events IS
    'Puts dead events back in front of what waits behind them; answers how many.';
REVOKE ALL ON FUNCTION livewell.redrive_dead_events FROM PUBLIC;
