-- The first event of a batch that has the key of this one: what may go alone.
--
-- Called by: claim_events, for an event that was lost with two relays.
CREATE OR REPLACE FUNCTION livewell.first_of_key(
    p_sink smallint, p_number bigint, p_numbers bigint[]
)
RETURNS bigint
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT min(d.number) FROM livewell.event_delivery d
    WHERE d.sink = p_sink
        AND d.number = ANY (p_numbers)
        AND d.key_hash = (
            SELECT k.key_hash FROM livewell.event_delivery k
            WHERE k.number = p_number AND k.sink = p_sink
        )
$$;
COMMENT ON FUNCTION livewell.first_of_key IS 'The first event of a batch with the key of this one.';
REVOKE ALL ON FUNCTION livewell.first_of_key FROM PUBLIC;
