-- End the relays of a sink whose lease has run out: what they were delivering has been lost once
-- more, and their shards are free.
--
-- Called by: renew_relay, outbox_claim, bury_outside.
-- p_judge: the relay that buries; only one that has itself renewed without a gap for a whole lease,
--          its own and the other's, may. NULL: whoever claims outside, which buries outsiders only.
-- A lease that ran out is counted (event_stat, lost_lease); not that of an outsider who held nothing.
-- Why the row is deleted FOR UPDATE: exchange_events holds it locked to its end, so a batch
-- is either finished before its relay is buried or refused.
CREATE OR REPLACE FUNCTION livewell.bury_relays(p_sink smallint, p_judge bigint)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_steady    interval;
    v_dead      bigint[];
    v_lost      bigint;
BEGIN
    SELECT CASE WHEN v_now - r.steady_since >= r.lease THEN v_now - r.steady_since END
    INTO v_steady
    FROM livewell.relay r WHERE r.id = p_judge;
    v_dead := ARRAY(
        SELECT d.id FROM livewell.relay d
        WHERE d.sink = p_sink
            AND d.expires_at < v_now
            AND (d.token IS NOT NULL OR d.lease <= v_steady)
        ORDER BY d.id FOR UPDATE SKIP LOCKED
    );
    IF cardinality(v_dead) > 0 THEN
        SELECT count(*) INTO v_lost FROM livewell.relay d
        WHERE d.id = ANY (v_dead)
            AND (
                d.token IS NULL
                OR EXISTS (
                    SELECT FROM livewell.event_flight f
                    WHERE f.relay = d.id AND cardinality(f.numbers) > 0
                )
            );
        IF v_lost > 0 THEN
            PERFORM livewell.add_event_stats(s.name, '{lost_lease}', ARRAY[v_lost], '{0}')
            FROM livewell.event_sink s WHERE s.id = p_sink;
        END IF;
        DELETE FROM livewell.relay d WHERE d.id = ANY (v_dead);
        PERFORM livewell.free_shards(p_sink, v_dead, true);
    END IF;
    RETURN cardinality(v_dead);
END
$$;
COMMENT ON FUNCTION livewell.bury_relays IS
    'Ends relays whose lease has run out; answers how many.';
REVOKE ALL ON FUNCTION livewell.bury_relays FROM PUBLIC;
