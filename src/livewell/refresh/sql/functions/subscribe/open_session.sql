-- A client comes: one heartbeat row. Its id is random and made by the caller, so a repeated call
-- has one effect. Stored is its hash (session_hash).
--
-- Called by: servers and other clients, for a user; for somebody anonymous, who then counts as one
--            viewer of their own, with public:<key>@<network>, or with NULL where no public key is
--            in play.
-- p_max:     sessions that the user may have; of somebody anonymous, that the public key may have
--            in all (take_session).
-- p_origin:  as servers before 0.7.0 name somebody anonymous: public:<key>@<network> beside a user
--            that is NULL; their keys have c_old_max sessions. Whose budget of unknown keys it
--            shares (take_cold). Stored as hashes.
-- Answer:    open; too_many (this user, public key or address has as many sessions as it may);
--            refused (the id is not free).
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.open_session(
    p_session uuid, p_user text DEFAULT NULL, p_max integer DEFAULT 1000,
    p_origin text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    c_old_max   CONSTANT pg_catalog.int4 := 10000;
    v_now       pg_catalog.timestamptz := livewell.now();
    v_id        pg_catalog.uuid := livewell.session_hash(p_session);
    v_key       pg_catalog.text := livewell.public_key_of(p_user);
    v_user      pg_catalog.text := coalesce(
        CASE WHEN v_key IS NULL THEN p_user END, 'session:' || v_id);
    v_origin    pg_catalog.text;        -- of somebody anonymous with a public key
    -- Sessions of that key.
    v_max       integer := CASE WHEN v_key IS NULL THEN c_old_max ELSE p_max END;
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);
    IF p_user LIKE 'session:%' OR octet_length(v_user) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION 'a user is named by 1 to 200 bytes that do not begin with "session:"'
        USING ERRCODE = 'LW003';
    END IF;
    IF v_user = p_user
       AND (
           SELECT count(*)
           FROM (
               SELECT FROM livewell.viewer_session s
               WHERE s.user_id = v_user AND s.id <> v_id LIMIT p_max) x) >= p_max THEN
        RETURN 'too_many';
    END IF;
    IF v_user IS DISTINCT FROM p_user THEN
        v_origin := livewell.origin_of(CASE WHEN v_key IS NULL THEN p_origin ELSE p_user END);
    END IF;
    IF v_origin IS NOT NULL AND NOT livewell.session_room(v_origin, v_max, 1)
       AND NOT EXISTS (SELECT FROM livewell.viewer_session s WHERE s.id = v_id) THEN
        RETURN 'too_many';
    END IF;
    INSERT INTO livewell.viewer_session AS s (id, seen_at, created_at, user_id, origin, public_key)
    VALUES (
        v_id, v_now, v_now, v_user, v_origin,
        CASE WHEN v_origin IS NOT NULL THEN coalesce(v_key, livewell.public_key_of(p_origin)) END)
    ON CONFLICT (id) DO NOTHING;
    IF NOT FOUND THEN
        -- It may be ours already: then this is a sign of life.
        RETURN
            CASE livewell.heartbeat_session(p_session, p_user)
                WHEN 'alive' THEN 'open'
                ELSE 'refused' END;
    END IF;
    IF v_origin IS NOT NULL AND NOT livewell.take_session(v_origin, v_max) THEN
        DELETE FROM livewell.viewer_session s WHERE s.id = v_id;
        RETURN 'too_many';
    END IF;
    RETURN 'open';
END
$$;
COMMENT ON FUNCTION livewell.open_session IS
    'Opens a viewer session under an id the caller made; the same call again changes nothing.';
REVOKE ALL ON FUNCTION livewell.open_session FROM PUBLIC;
