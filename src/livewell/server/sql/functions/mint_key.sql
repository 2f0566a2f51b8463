-- Make a key of a machine for an administrator who is known by a key or login of their own. The
-- caller made the new id and secret, and gives only the secret's hash.
--
-- Called by: servers, for the page /access. p_caller, p_caller_hash: id and hash of the secret of
--            the key or login that asks.
-- Index:     api_key_pkey.
-- Answer:    made; not_admin: the one who asks has no usable key with the scope admin; too_much: a
--            scope that they do not have themselves; exists: the id is taken.
-- Why SECURITY DEFINER: nobody but the owner writes keys. The role alone is not enough to make one:
-- the function finds the key that asks, compares its secret and gives no scope that it lacks. Row
-- security shows it that key and the new one, and no other.
CREATE OR REPLACE FUNCTION livewell.mint_key(
    p_caller text,
    p_caller_hash bytea,
    p_id text,
    p_hash bytea,
    p_name text,
    p_scopes text[],
    p_types text[],
    p_public boolean,
    p_seconds float8
)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now       pg_catalog.timestamptz;
    v_caller    livewell.api_key;
    v_expires   pg_catalog.timestamptz;
BEGIN
    IF p_seconds <= 0 OR p_seconds > 316224000 THEN
        RAISE EXCEPTION 'expires: more than 0 and at most ten years is allowed'
            USING ERRCODE = 'LW003';
    END IF;
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_caller, true);
    SELECT * INTO v_caller FROM livewell.api_key k WHERE k.id = p_caller FOR SHARE;
    v_now := livewell.now();
    v_expires := v_now + p_seconds * interval '1 second';
    IF v_caller.id IS NULL
        OR v_caller.secret_hash <> p_caller_hash
        OR p_caller_hash IS NULL
        OR v_caller.kind = 'link'
        OR v_caller.revoked_at IS NOT NULL
        OR v_caller.expires_at <= v_now
        OR v_caller.types IS NOT NULL
        OR NOT 'admin' = ANY (v_caller.scopes)
    THEN
        RETURN 'not_admin';
    END IF;
    IF NOT p_scopes <@ v_caller.scopes THEN
        RETURN 'too_much';
    END IF;
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    INSERT INTO livewell.api_key (
        id, user_id, kind, "name", scopes, types, public, secret_hash, created_at, expires_at
    )
    VALUES (
        p_id, 'key:' || p_id, 'key', p_name, p_scopes, p_types, p_public, p_hash, v_now, v_expires
    )
    ON CONFLICT (id) DO NOTHING;
    IF NOT FOUND THEN
        RETURN 'exists';
    END IF;
    PERFORM livewell.audit_act(
        'key:' || p_caller, NULL, 'keys.create', p_id,
        pg_catalog.jsonb_build_object('name', p_name), 'made', NULL,
        pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
            'scopes', p_scopes, 'types', p_types, 'public', p_public, 'expires_at', v_expires
        )),
        1
    );
    RETURN 'made';
END
$$;
COMMENT ON FUNCTION livewell.mint_key IS
    'Makes an API key for an administrator, with no scope that their own key lacks; audited.';
REVOKE ALL ON FUNCTION livewell.mint_key FROM PUBLIC;
