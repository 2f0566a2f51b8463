-- The contact that a call is about: that of its strongest identity.
--
-- Called by: settle_identities.
CREATE OR REPLACE FUNCTION livewell.strongest_contact(
    p_tenant text, p_ready livewell.given_identity[]
)
RETURNS uuid
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN (
        SELECT i.contact_id FROM unnest(p_ready) u
        JOIN livewell.contact_identity i
            ON i.tenant = p_tenant AND i.type = u.type AND i.value = u.value
        ORDER BY u.strength DESC, u.place LIMIT 1
    );
END
$$;
COMMENT ON FUNCTION livewell.strongest_contact IS 'The contact of the strongest identity of a call.';
REVOKE ALL ON FUNCTION livewell.strongest_contact FROM PUBLIC;
