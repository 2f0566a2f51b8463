-- The live contact that answers for an id: itself, or the one it was merged into. NULL if it was
-- erased, or never was.
--
-- Called by: erase_contact, find_contact, lock_contacts, put_identity, unmerge_contact.
-- Index:     contact_pkey, contact_alias_pkey
CREATE OR REPLACE FUNCTION livewell.current_contact(p_tenant text, p_id uuid)
RETURNS uuid
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN coalesce(
        (SELECT c.id FROM livewell.contact c WHERE c.tenant = p_tenant AND c.id = p_id),
        (SELECT a.merged_into FROM livewell.contact_alias a WHERE a.tenant = p_tenant AND a.id = p_id)
    );
END
$$;
COMMENT ON FUNCTION livewell.current_contact IS 'The live contact that answers for an id, or NULL.';
REVOKE ALL ON FUNCTION livewell.current_contact FROM PUBLIC;
