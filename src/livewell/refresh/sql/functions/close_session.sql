-- A client goes: its row, its subscriptions, and what they counted against its user.
--
-- Called by: servers and other clients. Answer: closed; unknown (no such session, or somebody else's: the same answer).
-- Locks: session, then viewer, as subscribe and sweep_sessions do.
-- user_id || '': by the id, never by the index on users, whatever the statistics say.
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.close_session(p_session uuid, p_user text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_user  pg_catalog.text := coalesce(p_user, 'session:' || p_session);
    v_n     integer;
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);      -- row security holds us to the rows of this user
    DELETE FROM livewell.viewer_session s WHERE s.id = p_session AND s.user_id || '' = v_user;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    DELETE FROM livewell.subscription b WHERE b.session_id = p_session;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    UPDATE livewell.viewer w SET subscriptions = greatest(w.subscriptions - v_n, 0) WHERE w.user_id = v_user AND v_n > 0;
    RETURN 'closed';
END
$$;
COMMENT ON FUNCTION livewell.close_session IS 'Ends a viewer session and everything it watched.';
REVOKE ALL ON FUNCTION livewell.close_session FROM PUBLIC;
