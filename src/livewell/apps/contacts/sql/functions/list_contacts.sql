-- A page of the live contacts of a tenant, the newest first, each with five of its identities.
--
-- Called by: Contacts.list, GET /v1/contacts.
-- p_after_at, p_after: the last one of the page before; NULL: from the newest.
-- Index:     contact_newest_idx
-- Why SECURITY DEFINER: as resolve_contact.
CREATE OR REPLACE FUNCTION livewell.list_contacts(
    p_tenant text, p_after_at timestamptz, p_after uuid, p_limit integer
)
RETURNS TABLE (id uuid, created_at timestamptz, identities jsonb)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    PERFORM livewell.enter_tenant(p_tenant);
    RETURN QUERY
    SELECT c.id, c.created_at, (
        SELECT coalesce(jsonb_agg(jsonb_build_object('type', i.type, 'value', i.value)
            ORDER BY i.type, i.value), '[]')
        FROM (
            SELECT o.type, o.value FROM livewell.contact_identity o
            WHERE o.tenant = p_tenant AND o.contact_id = c.id ORDER BY o.type, o.value LIMIT 5
        ) i)
    FROM livewell.contact c
    WHERE c.tenant = p_tenant
        AND (p_after IS NULL OR (c.created_at, c.id) < (p_after_at, p_after))
    ORDER BY c.created_at DESC, c.id DESC LIMIT least(greatest(p_limit, 1), 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_contacts IS 'A page of the contacts of a tenant, the newest first.';
REVOKE ALL ON FUNCTION livewell.list_contacts FROM PUBLIC;
