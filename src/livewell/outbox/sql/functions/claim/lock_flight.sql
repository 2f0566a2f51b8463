-- What a relay delivers now, locked. Before its first claim: nothing, under the number 0.
--
-- Called by: finish_events, claim_events. The caller has locked the relay's row.
-- Index:     event_flight_pkey, backwards: the newest is the one that lives. The others in the index are
--            dead, and while somebody holds an old snapshot there may be thousands of them.
CREATE OR REPLACE FUNCTION livewell.lock_flight(p_relay bigint)
RETURNS livewell.event_flight
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_flight livewell.event_flight;
BEGIN
    SELECT f.* INTO v_flight FROM livewell.event_flight f
    WHERE f.relay = p_relay
    ORDER BY f.relay DESC, f.flight DESC LIMIT 1
    FOR UPDATE;
    IF NOT FOUND THEN
        v_flight := (p_relay, 0, livewell.now(), '{}');
    END IF;
    RETURN v_flight;
END
$$;
COMMENT ON FUNCTION livewell.lock_flight IS 'What a relay delivers now, locked.';
REVOKE ALL ON FUNCTION livewell.lock_flight FROM PUBLIC;
