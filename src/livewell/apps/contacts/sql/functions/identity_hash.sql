-- What is kept of an erased identity: a hash that nobody can try addresses against without the salt.
--
-- Called by: drop_erased, erase_contact, put_identity, resolve_contact.
CREATE OR REPLACE FUNCTION livewell.identity_hash(p_tenant text, p_type text, p_value text)
RETURNS bytea
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN (
        SELECT sha256(s.salt || convert_to(concat_ws(E'\x1f', p_tenant, p_type, p_value), 'UTF8'))
        FROM livewell.contact_salt s
    );
END
$$;
COMMENT ON FUNCTION livewell.identity_hash IS 'The hash of an identity with the salt of this database.';
REVOKE ALL ON FUNCTION livewell.identity_hash FROM PUBLIC;
