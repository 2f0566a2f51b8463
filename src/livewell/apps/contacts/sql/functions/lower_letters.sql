-- A text in lower case, the same whatever the locale of the database is.
--
-- Called by: normal_domain, normal_identity.
-- Why not lower(): in a database with the locale C it leaves Ä as it is, and two writings of one
-- address would be two people. Postgres 17 brings a collation for it; before, ICU has one, if the server
-- is built with it. Each is named in a statement of its own, which is not looked at where it is missing.
CREATE OR REPLACE FUNCTION livewell.lower_letters(p_text text)
RETURNS text
LANGUAGE plpgsql
STABLE
STRICT
SET search_path = ''
AS $$
BEGIN
    IF p_text !~ '[^\x01-\x7f]' THEN
        RETURN lower(p_text COLLATE "C");
    END IF;
    IF current_setting('server_version_num')::integer >= 170000 THEN
        RETURN normalize(lower(p_text COLLATE pg_catalog.pg_c_utf8), NFC);
    END IF;
    PERFORM FROM pg_catalog.pg_collation c
    WHERE c.collname = 'und-x-icu' AND c.collnamespace = 'pg_catalog'::pg_catalog.regnamespace;
    IF FOUND THEN
        RETURN normalize(lower(p_text COLLATE pg_catalog."und-x-icu"), NFC);
    END IF;
    RETURN normalize(lower(p_text), NFC);
END
$$;
COMMENT ON FUNCTION livewell.lower_letters IS 'Lower case that does not depend on the locale.';
REVOKE ALL ON FUNCTION livewell.lower_letters FROM PUBLIC;
