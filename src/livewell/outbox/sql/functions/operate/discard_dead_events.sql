-- Delete dead events for good. What is parked behind one goes now, in order.
--
-- Called by: OutboxAdmin.discard; prune_outbox.
-- p_sink:    only letters of this sink; NULL: of every sink.
-- Index:     dead_event_pkey.
-- A letter that is being redriven right now is left alone. Answer: how many letters there were.
CREATE OR REPLACE FUNCTION livewell.discard_dead_events(p_sink text, p_numbers bigint[])
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
        )
        SELECT array_agg(l.key_hash), array_agg(l.shard), array_agg(l.number)
        INTO v_lanes, v_shards, v_numbers
        FROM letter l
        WHERE l.parks;
        IF v_lanes IS NOT NULL THEN
            PERFORM livewell.release_keys(v_sink, v_lanes, v_shards, v_numbers);
        END IF;
    END LOOP;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.discard_dead_events IS
    'Deletes dead events and lets go what is parked behind them; answers how many.';
REVOKE ALL ON FUNCTION livewell.discard_dead_events FROM PUBLIC;
