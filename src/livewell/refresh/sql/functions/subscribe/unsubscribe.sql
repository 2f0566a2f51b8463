-- A client no longer looks at these keys. Answers how many subscriptions ended; -1 when there is no
-- such session, or it is somebody else's.
--
-- Called by: servers and other clients, many pairs in one round trip. Nothing is parked here:
--            dispatch_due finds out when the key is next due.
-- p_user:    a user; public:<key>@<network> for somebody anonymous with a public key, whose session
--            must be of that key; NULL for somebody anonymous who is known by the id alone.
-- Locks: session, then viewer, as subscribe does.
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.unsubscribe(
    p_session uuid, p_user text, p_types text[], p_keys text[])
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_id    pg_catalog.uuid := livewell.session_hash(p_session);
    v_key   pg_catalog.text := livewell.public_key_of(p_user);
    v_user  pg_catalog.text := coalesce(
        CASE WHEN v_key IS NULL THEN p_user END, 'session:' || v_id);
    v_pairs pg_catalog.text[];
    v_n     integer;
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);
    IF coalesce(cardinality(p_keys), 0) > 1000
       OR cardinality(p_types) IS DISTINCT FROM cardinality(p_keys) THEN
        RAISE EXCEPTION '% types and % keys: at most 1000 pairs in one call', cardinality(p_types),
            cardinality(p_keys)
        USING ERRCODE = 'LW003';
    END IF;
    IF livewell.heartbeat_session(p_session, p_user) = 'unknown' THEN
        RETURN -1;
    END IF;
    UPDATE livewell.viewer_session s SET subs_version = s.subs_version + 1
    WHERE s.id = v_id AND s.user_id || '' = v_user AND coalesce(s.public_key = v_key, true);
    IF NOT FOUND THEN
        RETURN -1;      -- swept at this moment
    END IF;
    -- By the session alone: an index on the key would read all viewers of a popular one.
    v_pairs := ARRAY(SELECT g.type || ':' || g.key FROM unnest(p_types, p_keys) AS g (type, key));
    DELETE FROM livewell.subscription b
    WHERE b.session_id = v_id AND b.data_type || ':' || b.key = ANY (v_pairs);
    GET DIAGNOSTICS v_n = ROW_COUNT;
    UPDATE livewell.viewer w SET subscriptions = greatest(w.subscriptions - v_n, 0)
    WHERE w.user_id = v_user AND v_n > 0;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.unsubscribe IS
    'Ends subscriptions of a session; answers how many there were, or -1 for an unknown session.';
REVOKE ALL ON FUNCTION livewell.unsubscribe FROM PUBLIC;
