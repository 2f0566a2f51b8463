-- The key with this id, if it may be used now: what it may do, and the hash to compare its secret
-- with.
--
-- Called by: servers before 0.7.0 (find_api_key has followed), at most once a minute per key and
--            process. An unknown, a revoked and an expired id give no row: the same answer. A login
--            link is no key (redeem_link).
-- Index:     api_key_pkey.
-- Why SECURITY DEFINER: livewell_api has no table rights; it acts only on the row of the id it is
-- given.
CREATE OR REPLACE FUNCTION livewell.find_key(p_id text)
RETURNS TABLE (
    secret_hash bytea, kind text, scopes text[], types text[], public boolean, seconds_left float8
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    RETURN QUERY
    SELECT k.secret_hash, k.kind, k.scopes, k.types, k.public,
        extract(epoch FROM k.expires_at - v_now)::pg_catalog.float8
    FROM livewell.api_key k
    WHERE k.id = p_id
        AND k.kind <> 'link'
        AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > v_now);
END
$$;
COMMENT ON FUNCTION livewell.find_key IS
    'What a key may do, and the hash of its secret; no row when it is unknown, revoked or '
    'expired.';
REVOKE ALL ON FUNCTION livewell.find_key FROM PUBLIC;
