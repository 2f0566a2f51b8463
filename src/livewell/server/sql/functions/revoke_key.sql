-- Revoke a key, a link or a login: servers refuse it at once, or when what they remember of it is a
-- minute old. Answers false when there is none of that id.
--
-- Called by: `livewell keys revoke`, as the owner.
CREATE OR REPLACE FUNCTION livewell.revoke_key(p_id text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.api_key k SET revoked_at = coalesce(k.revoked_at, v_now) WHERE k.id = p_id;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.revoke_key IS
    'Revokes an API key, a login link or a login; false when there is none of that id.';
REVOKE ALL ON FUNCTION livewell.revoke_key FROM PUBLIC;
