-- A person logs out: their login ends, everywhere. Answers false when there is none of that id, or
-- it is no login.
--
-- Called by: servers, with the id of the login whose secret they have just seen.
-- Index: api_key_pkey.
-- Why SECURITY DEFINER: livewell_api has no table rights; it can end nothing but a login, and row
-- security holds it to the one it was given.
CREATE OR REPLACE FUNCTION livewell.end_login(p_id text)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now pg_catalog.timestamptz := livewell.now();
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    UPDATE livewell.api_key k
    SET revoked_at = v_now
    WHERE k.id = p_id AND k.kind = 'login' AND k.revoked_at IS NULL;
    IF FOUND THEN
        PERFORM livewell.audit_act(
            'key:' || p_id, NULL, 'logins.end', p_id, '{}', 'done', '{"revoked": false}',
            '{"revoked": true}', 1
        );
        RETURN true;
    END IF;
    RETURN EXISTS (SELECT FROM livewell.api_key k WHERE k.id = p_id AND k.kind = 'login');
END
$$;
COMMENT ON FUNCTION livewell.end_login IS
    'Ends the login of a browser; false when there is none of that id.';
REVOKE ALL ON FUNCTION livewell.end_login FROM PUBLIC;
