-- Logins of browsers that go on, and login links that nobody followed yet; the newest first.
--
-- Called by: servers, for the page /access and to end all of them. No index: keys are few, and
--            create_key deletes logins a month after their end.
CREATE OR REPLACE FUNCTION livewell.list_logins(p_limit integer)
RETURNS TABLE (
    id text, kind text, scopes text[], created_at timestamptz, last_used_at timestamptz,
    expires_at timestamptz
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT k.id, k.kind, k.scopes, k.created_at, k.last_used_at, k.expires_at
    FROM livewell.api_key k
    WHERE k.kind <> 'key' AND k.revoked_at IS NULL AND k.expires_at > v_now
    ORDER BY k.created_at DESC, k.id LIMIT least(greatest(p_limit, 1), 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_logins IS
    'Logins of browsers and login links that can be used now; never a secret.';
REVOKE ALL ON FUNCTION livewell.list_logins FROM PUBLIC;
