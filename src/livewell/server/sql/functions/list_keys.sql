-- Keys, newest first, one page; without their hashes.
--
-- Called by: `livewell keys list`, as the owner; servers, as livewell_operate, for the page /access.
--            Login links and logins of browsers only if asked for. p_after: the id that the page before ended with.
CREATE OR REPLACE FUNCTION livewell.list_keys(
    p_all boolean DEFAULT false, p_limit integer DEFAULT 100, p_after text DEFAULT NULL
)
RETURNS TABLE (
    id text, name text, kind text, scopes text[], types text[], public boolean,
    created_at timestamptz, expires_at timestamptz, revoked_at timestamptz,
    last_used_at timestamptz, usable boolean
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
    v_after timestamptz;
BEGIN
    IF p_after IS NOT NULL THEN
        SELECT k.created_at INTO v_after FROM livewell.api_key k WHERE k.id = p_after;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'after: no key has the id %; begin again without it', left(p_after, 40)
                USING ERRCODE = 'LW003';
        END IF;
    END IF;
    RETURN QUERY
    SELECT k.id, k.name, k.kind, k.scopes, k.types, k.public, k.created_at, k.expires_at,
        k.revoked_at, k.last_used_at,
        k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > v_now)
    FROM livewell.api_key k
    WHERE (p_all OR k.kind = 'key')
        AND (p_after IS NULL OR k.created_at < v_after OR k.created_at = v_after AND k.id > p_after)
    ORDER BY k.created_at DESC, k.id LIMIT least(greatest(p_limit, 1), 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_keys IS
    'API keys with what they may do and when they were used; never a secret.';
REVOKE ALL ON FUNCTION livewell.list_keys FROM PUBLIC;
