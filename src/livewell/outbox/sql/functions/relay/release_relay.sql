-- The end of a graceful stop: give up the lease and every shard, at once.
--
-- Called by: Relay, last thing. What it was delivering and did not finish goes again, and is not
--            counted as lost.
CREATE OR REPLACE FUNCTION livewell.release_relay(p_relay bigint)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_sink  smallint;
BEGIN
    DELETE FROM livewell.relay r WHERE r.id = p_relay RETURNING r.sink INTO v_sink;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    RETURN livewell.free_shards(v_sink, ARRAY[p_relay], false);
END
$$;
COMMENT ON FUNCTION livewell.release_relay IS
    'Ends a relay and frees its shards; answers how many events it had not finished.';
REVOKE ALL ON FUNCTION livewell.release_relay FROM PUBLIC;
