-- Lock the session that subscribes and count a change of what it watches; answers whether there is
-- one. It is a sign of life.
--
-- Called by: subscribe, first, as the owner and with its planner settings. p_session, p_user: as it
--            was given them; p_id, p_name, p_public_key: under which they are stored. p_begun: when
--            it began, for seen_at, which only grows.
-- Index:     viewer_session_pkey. user_id || '': see heartbeat_session.
CREATE OR REPLACE FUNCTION livewell.touch_session(
    p_session uuid, p_user text, p_id uuid, p_name text, p_public_key text, p_begun timestamptz)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    -- Seen lately: one write. After a long silence what it watched may be parked, and the heartbeat
    -- sees to that.
    UPDATE livewell.viewer_session s
    SET subs_version = s.subs_version + 1,
        seen_at = CASE
            WHEN s.seen_at > p_begun - interval '1 second' THEN s.seen_at ELSE p_begun END
    WHERE s.id = p_id AND s.user_id || '' = p_name AND coalesce(s.public_key = p_public_key, true)
      AND s.seen_at > p_begun - interval '2 minutes';
    IF NOT FOUND AND livewell.heartbeat_session(p_session, p_user) = 'alive' THEN
        UPDATE livewell.viewer_session s SET subs_version = s.subs_version + 1
        WHERE s.id = p_id AND s.user_id || '' = p_name
          AND coalesce(s.public_key = p_public_key, true);
    END IF;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.touch_session IS
    'Locks a session that changes what it watches, and keeps it alive; false when there is none.';
REVOKE ALL ON FUNCTION livewell.touch_session FROM PUBLIC;
