-- A person follows a login link: use it up, and make the login of their browser in its place.
-- Answers whether the link was good.
--
-- Called by: servers. p_hash is of the link's secret, p_login_* are of the login that the caller
--            made; a second use of the link finds it revoked.
-- Comparing hashes by = leaks nothing: who does not know the secret cannot steer its hash.
-- Index: api_key_pkey.
-- Why SECURITY DEFINER: livewell_api has no table rights; it acts only on the link it is given, and
-- makes a login with no more than the link's scopes.
CREATE OR REPLACE FUNCTION livewell.redeem_link(
    p_id text, p_hash bytea, p_login_id text, p_login_hash bytea, p_login_seconds float8
)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now   pg_catalog.timestamptz;
    v_link  livewell.api_key;
BEGIN
    IF p_login_seconds IS NULL OR p_login_seconds NOT BETWEEN 60 AND 2592000 THEN
        RAISE EXCEPTION 'a login lasts 60 seconds to 30 days' USING ERRCODE = 'LW003';
    END IF;
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    SELECT * INTO v_link FROM livewell.api_key k WHERE k.id = p_id AND k.kind = 'link' FOR UPDATE;
    v_now := livewell.now();
    IF NOT FOUND
        OR v_link.secret_hash <> p_hash
        OR v_link.revoked_at IS NOT NULL
        OR v_link.expires_at <= v_now
    THEN
        RETURN false;
    END IF;
    UPDATE livewell.api_key k SET revoked_at = v_now, last_used_at = v_now WHERE k.id = p_id;
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_login_id, true);
    INSERT INTO livewell.api_key (
        id, user_id, kind, "name", scopes, types, secret_hash, created_at, expires_at, last_used_at
    )
    VALUES (
        p_login_id, 'key:' || p_login_id, 'login', v_link."name", v_link.scopes, v_link.types,
        p_login_hash, v_now, v_now + p_login_seconds * interval '1 second', v_now
    );
    PERFORM livewell.audit_act(
        'key:' || p_login_id, NULL, 'logins.begin', p_login_id,
        pg_catalog.jsonb_build_object('link', p_id, 'name', v_link."name"), 'done', NULL,
        pg_catalog.jsonb_build_object('scopes', v_link.scopes), 1
    );
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.redeem_link IS
    'Uses up a login link and makes the login of a browser; false when the link is not good (any '
    'more).';
REVOKE ALL ON FUNCTION livewell.redeem_link FROM PUBLIC;
