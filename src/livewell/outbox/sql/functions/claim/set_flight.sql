-- Write what a relay delivers from now on, in place of what it delivered, under the next number.
--
-- Called by: finish_events, claim_events. p_flight: what lock_flight answered.
-- Index:     event_flight_pkey.
CREATE OR REPLACE FUNCTION livewell.set_flight(
    p_flight livewell.event_flight, p_since timestamptz, p_numbers bigint[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
BEGIN
    IF p_flight.flight = 0 THEN
        INSERT INTO livewell.event_flight (relay, flight, since, numbers)
        VALUES (p_flight.relay, nextval('livewell.event_flight_seq'), p_since, p_numbers);
    ELSE
        UPDATE livewell.event_flight f
        SET flight = nextval('livewell.event_flight_seq'), since = p_since, numbers = p_numbers
        WHERE f.relay = p_flight.relay AND f.flight = p_flight.flight;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.set_flight IS 'Writes what a relay delivers from now on.';
REVOKE ALL ON FUNCTION livewell.set_flight FROM PUBLIC;
