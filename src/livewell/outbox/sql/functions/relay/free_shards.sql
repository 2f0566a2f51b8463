-- What is left of relays that have ended: their flights are over, and their shards free.
--
-- Called by: bury_relays, release_relay.
-- p_lost: they died, so what they were delivering counts as lost once more. What was lost five
--         times is a dead letter: it may be the killer.
CREATE OR REPLACE FUNCTION livewell.free_shards(p_sink smallint, p_relays bigint[], p_lost boolean)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_numbers   bigint[];
    v_dead      bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM livewell.event_flight f WHERE f.relay = ANY (p_relays) RETURNING f.numbers
    )
    SELECT coalesce(array_agg(n), '{}') INTO v_numbers FROM gone g CROSS JOIN unnest(g.numbers) AS n;
    IF p_lost AND cardinality(v_numbers) > 0 THEN
        WITH lost AS (
            UPDATE livewell.event_delivery d
            SET lost = d.lost + 1
            WHERE d.sink = p_sink AND d.number = ANY (v_numbers)
            RETURNING d.number, d.lost
        )
        SELECT coalesce(array_agg(l.number), '{}') INTO v_dead FROM lost l WHERE l.lost >= 5;
        IF cardinality(v_dead) > 0 THEN
            PERFORM livewell.bury_events(
                p_sink, v_dead, array_fill('lost'::text, ARRAY[cardinality(v_dead)]),
                array_fill('five relays died delivering it'::text, ARRAY[cardinality(v_dead)])
            );
        END IF;
    END IF;
    UPDATE livewell.event_block b
    SET state = 'draining', retry_at = v_now
    WHERE b.sink = p_sink
        AND b.state = 'sending'
        AND b.shard IN (
            SELECT h.shard FROM livewell.relay_shard h
            WHERE h.sink = p_sink AND h.relay = ANY (p_relays)
        );
    UPDATE livewell.relay_shard h SET relay = NULL WHERE h.sink = p_sink AND h.relay = ANY (p_relays);
    RETURN cardinality(v_numbers);
END
$$;
COMMENT ON FUNCTION livewell.free_shards IS
    'Ends the flights of relays that have ended and frees their shards; answers how many events.';
REVOKE ALL ON FUNCTION livewell.free_shards FROM PUBLIC;
