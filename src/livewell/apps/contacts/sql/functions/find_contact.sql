-- The contact that has an identity, as show_contact shows it; NULL if nobody has it. Writes nothing.
--
-- Called by: Contacts.find, GET /v1/contacts/find.
-- Why SECURITY DEFINER: as resolve_contact.
CREATE OR REPLACE FUNCTION livewell.find_contact(p_tenant text, p_type text, p_value text)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_id    pg_catalog.uuid;
BEGIN
    PERFORM livewell.enter_tenant(p_tenant);
    SELECT i.contact_id INTO v_id
    FROM livewell.identity_rule(p_tenant, p_type) r
    JOIN livewell.contact_identity i ON i.tenant = p_tenant AND i.type = p_type
        AND i.value = livewell.normal_identity(p_type, p_value, r.fold_plus, r.fold_dots);
    RETURN CASE WHEN v_id IS NOT NULL THEN livewell.show_contact(p_tenant, v_id) END;
END
$$;
COMMENT ON FUNCTION livewell.find_contact IS 'The contact that has an identity, or NULL.';
REVOKE ALL ON FUNCTION livewell.find_contact FROM PUBLIC;
