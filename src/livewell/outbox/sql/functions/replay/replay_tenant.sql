-- The tenant_hash under which replayed events take their turns: all of them are one tenant more.
--
-- Called by: feed_replay, replay_room.
CREATE OR REPLACE FUNCTION livewell.replay_tenant()
RETURNS integer
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT hashtext(E'\x1freplay')
$$;
COMMENT ON FUNCTION livewell.replay_tenant IS 'Whose turn replayed events wait for.';
REVOKE ALL ON FUNCTION livewell.replay_tenant FROM PUBLIC;
