-- Make a key of a machine, or a login link. The caller made the id and the secret, and gives only
-- the secret's hash; the same call again changes nothing.
--
-- Called by: `livewell keys`, and a server on the embedded database, as the owner; nobody else may.
CREATE OR REPLACE FUNCTION livewell.create_key(
    p_id text,
    p_hash bytea,
    p_kind text,
    p_name text,
    p_scopes text[],
    p_types text[],
    p_public boolean,
    p_seconds float8
)
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_expires   timestamptz := v_now + p_seconds * interval '1 second';
BEGIN
    -- What has long been of no use is not kept for ever.
    DELETE FROM livewell.api_key k
    WHERE k.kind <> 'key' AND k.expires_at < v_now - interval '30 days';
    INSERT INTO livewell.api_key (
        id, user_id, kind, name, scopes, types, public, secret_hash, created_at, expires_at
    )
    VALUES (
        p_id, 'key:' || p_id, p_kind, p_name, p_scopes, p_types, p_public, p_hash, v_now, v_expires
    )
    ON CONFLICT (id) DO NOTHING;
    RETURN v_expires;
END
$$;
COMMENT ON FUNCTION livewell.create_key IS
    'Makes an API key or a login link from the hash of its secret; answers when it expires.';
REVOKE ALL ON FUNCTION livewell.create_key FROM PUBLIC;
