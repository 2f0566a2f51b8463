-- Say for which tenant this transaction acts: row security holds it to that tenant's rows.
--
-- Called by: decide_contact_conflict, erase_contact, find_contact, list_contact_conflicts,
--            list_contacts, list_identity_policies, put_identity, resolve_contact,
--            set_identity_policy, show_contact, unmerge_contact; each of them first.
-- There is no tenant '': a policy that compares with a setting cannot tell it from none.
CREATE OR REPLACE FUNCTION livewell.enter_tenant(p_tenant text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF p_tenant IS NULL OR octet_length(p_tenant) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION 'tenant "%": 1 to 200 bytes are allowed', left(p_tenant, 50)
            USING ERRCODE = 'LW003';
    END IF;
    PERFORM set_config('livewell.tenant', p_tenant, true);
END
$$;
COMMENT ON FUNCTION livewell.enter_tenant IS 'Holds the rest of the transaction to one tenant.';
REVOKE ALL ON FUNCTION livewell.enter_tenant FROM PUBLIC;
