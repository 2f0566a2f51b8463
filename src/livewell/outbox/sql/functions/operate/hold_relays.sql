-- Wait until no relay of a sink is in an exchange, and let none begin one before this transaction ends.
--
-- Called by: redrive_dead_events, discard_dead_events.
-- Why: an exchange touches the blocks of many keys in an order of its own. Whoever changes blocks
-- from outside would meet it half way, and one of the two would be ended as a deadlock.
CREATE OR REPLACE FUNCTION livewell.hold_relays(p_sink smallint)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM FROM livewell.relay r WHERE r.sink = p_sink ORDER BY r.id FOR SHARE;
END
$$;
COMMENT ON FUNCTION livewell.hold_relays IS 'Keeps the relays of a sink from exchanging, to the end.';
REVOKE ALL ON FUNCTION livewell.hold_relays FROM PUBLIC;
