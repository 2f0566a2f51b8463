-- The public key of somebody anonymous, who is named public:<key>@<network> by servers; NULL for a
-- user, and for who is not named at all.
--
-- Called by: open_session, heartbeat_session, close_session, subscribe, unsubscribe,
--            keys_of_sessions.
CREATE OR REPLACE FUNCTION livewell.public_key_of(p_user text)
RETURNS text
LANGUAGE sql
IMMUTABLE STRICT PARALLEL SAFE
SET search_path = ''
AS $$
    SELECT substring(p_user FROM '^public:([^@]+)@')
$$;
COMMENT ON FUNCTION livewell.public_key_of IS 'The public key in the name of somebody anonymous.';
REVOKE ALL ON FUNCTION livewell.public_key_of FROM PUBLIC;
