-- A client comes: one heartbeat row. Its id is random and made by the caller, so a repeated call has one effect.
--
-- Called by: servers and other clients, for a user; with NULL for somebody anonymous, who then counts as one viewer of their own.
-- Answer:    open; too_many (this user has p_max sessions); refused (the id is not free).
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.open_session(p_session uuid, p_user text DEFAULT NULL, p_max integer DEFAULT 1000)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_user  pg_catalog.text := coalesce(p_user, 'session:' || p_session);
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);      -- row security holds us to the rows of this user
    IF p_user LIKE 'session:%' OR octet_length(v_user) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION 'a user is named by 1 to 200 bytes that do not begin with "session:"' USING ERRCODE = 'LW003';
    END IF;
    IF (SELECT count(*) FROM (SELECT FROM livewell.viewer_session s WHERE s.user_id = v_user AND s.id <> p_session LIMIT p_max) x) >= p_max THEN
        RETURN 'too_many';
    END IF;
    INSERT INTO livewell.viewer_session AS s (id, seen_at, created_at, user_id) VALUES (p_session, v_now, v_now, v_user)
    ON CONFLICT (id) DO NOTHING;
    IF FOUND THEN
        RETURN 'open';
    END IF;
    -- It may be ours already: then this is a sign of life.
    RETURN CASE livewell.heartbeat_session(p_session, v_user) WHEN 'alive' THEN 'open' ELSE 'refused' END;
END
$$;
COMMENT ON FUNCTION livewell.open_session IS 'Opens a viewer session under an id the caller made; the same call again changes nothing.';
REVOKE ALL ON FUNCTION livewell.open_session FROM PUBLIC;
