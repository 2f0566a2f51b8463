-- Say how many sessions the strangers of a public key may have at a time; NULL: what the setting
-- says. Answers false when there is no public key of that id.
--
-- Called by: `livewell keys create`, as the owner, in the statement that makes the key.
CREATE OR REPLACE FUNCTION livewell.limit_key(p_id text, p_sessions_max integer)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.api_key k SET sessions_max = p_sessions_max WHERE k.id = p_id AND k.public;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.limit_key IS
    'Sets how many sessions a public key may have; false when there is none of that id.';
REVOKE ALL ON FUNCTION livewell.limit_key FROM PUBLIC;
