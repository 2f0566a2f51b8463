-- Whose a login is: the person at whose terminal its link was printed. NULL: that is not known, or
-- this is no login.
--
-- Called by: servers, for what belongs to people (owner.py), once per login and process.
-- Only make_link() makes links, and it writes who asked for it into the name, which a login keeps.
-- Index:     api_key_pkey.
-- Why SECURITY DEFINER: livewell_api has no table rights; it acts only on the row of the id it is
-- given.
CREATE OR REPLACE FUNCTION livewell.find_login_owner(p_id text)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    RETURN (
        SELECT substring(k."name" FROM '^login link of (cli:.+)$') FROM livewell.api_key k
        WHERE k.id = p_id AND k.kind = 'login'
    );
END
$$;
COMMENT ON FUNCTION livewell.find_login_owner IS
    'The person at whose terminal the link of a login was printed.';
REVOKE ALL ON FUNCTION livewell.find_login_owner FROM PUBLIC;
