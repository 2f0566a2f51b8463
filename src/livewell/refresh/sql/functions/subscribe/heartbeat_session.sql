-- A sign of life from a client. Only messages that came from the client move seen_at (R3).
--
-- Called by: open_session, touch_session, unsubscribe; servers and other clients, once a minute per
--            session; more often is answered without a write (at most one a second, F-E7).
-- p_user:    a user; public:<key>@<network> for somebody anonymous with a public key, whose session
--            must be of that key; NULL for somebody anonymous who is known by the id alone.
-- Answer:    alive; unknown (no such session, or somebody else's: the same answer).
-- A session that was silent for long may have been taken for a ghost, and its keys parked: it
-- un-parks them. From two minutes on, not five: a checker that reads the clock a moment after us
-- must not find us gone while we believed that nobody could. user_id || '': by the id, never by the
-- index on users, whatever the statistics say.
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.heartbeat_session(p_session uuid, p_user text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    -- Before the lock: seen_at only grows, and the two minutes below leave room for a wait.
    v_now   pg_catalog.timestamptz := livewell.now();
    v_id    pg_catalog.uuid := livewell.session_hash(p_session);
    v_key   pg_catalog.text := livewell.public_key_of(p_user);
    v_user  pg_catalog.text := coalesce(
        CASE WHEN v_key IS NULL THEN p_user END, 'session:' || v_id);
    v_seen  pg_catalog.timestamptz;
    v_types pg_catalog.text[];
    v_keys  pg_catalog.text[];
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);
    SELECT s.seen_at
    INTO v_seen FROM livewell.viewer_session s
    WHERE s.id = v_id AND s.user_id || '' = v_user AND coalesce(s.public_key = v_key, true);
    IF v_seen > v_now - interval '1 second' THEN
        RETURN 'alive';
    END IF;
    UPDATE livewell.viewer_session s SET seen_at = greatest(s.seen_at, v_now)
    WHERE s.id = v_id AND s.user_id || '' = v_user AND coalesce(s.public_key = v_key, true);
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    IF v_seen < v_now - interval '2 minutes' THEN
        SELECT array_agg(b.data_type), array_agg(b.key)
        INTO v_types, v_keys FROM livewell.subscription b
        WHERE b.session_id = v_id;
        PERFORM livewell.unpark(v_types, v_keys, v_now);
    END IF;
    RETURN 'alive';
END
$$;
COMMENT ON FUNCTION livewell.heartbeat_session IS
    'Keeps a viewer session alive, and un-parks its keys if it was silent for long.';
REVOKE ALL ON FUNCTION livewell.heartbeat_session FROM PUBLIC;
