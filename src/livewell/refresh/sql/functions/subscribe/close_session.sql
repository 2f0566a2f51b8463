-- A client goes: its row, its subscriptions, and what they counted against its user.
--
-- Called by: servers and other clients. Answer: closed; unknown (no such session, or somebody
--            else's: the same answer).
-- p_user:    a user; public:<key>@<network> for somebody anonymous with a public key, whose session
--            must be of that key; NULL for somebody anonymous who is known by the id alone.
-- Locks: session, then viewer, then shares of sessions, as subscribe and sweep_sessions do.
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
    v_id    pg_catalog.uuid := livewell.session_hash(p_session);
    v_key   pg_catalog.text := livewell.public_key_of(p_user);
    v_user  pg_catalog.text := coalesce(
        CASE WHEN v_key IS NULL THEN p_user END, 'session:' || v_id);
    v_n     integer;
    v_origin pg_catalog.text;
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);
    DELETE FROM livewell.viewer_session s
    WHERE s.id = v_id AND s.user_id || '' = v_user AND coalesce(s.public_key = v_key, true)
    RETURNING s.origin INTO v_origin;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    DELETE FROM livewell.subscription b WHERE b.session_id = v_id;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    UPDATE livewell.viewer w SET subscriptions = greatest(w.subscriptions - v_n, 0)
    WHERE w.user_id = v_user AND v_n > 0;
    PERFORM livewell.free_sessions(ARRAY[v_origin]);
    RETURN 'closed';
END
$$;
COMMENT ON FUNCTION livewell.close_session IS 'Ends a viewer session and everything it watched.';
REVOKE ALL ON FUNCTION livewell.close_session FROM PUBLIC;
