-- A page of the conflicts of a tenant that wait for somebody, the oldest first, with what each side
-- is known by.
--
-- Called by: Contacts.conflicts, GET /v1/contacts/conflicts.
-- Index:     contact_conflict_waiting_idx
-- Why SECURITY DEFINER: as resolve_contact.
CREATE OR REPLACE FUNCTION livewell.list_contact_conflicts(
    p_tenant text, p_after bigint, p_limit integer
)
RETURNS TABLE (id bigint, why text, opened_at timestamptz, sides jsonb)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    PERFORM livewell.enter_tenant(p_tenant);
    RETURN QUERY
    SELECT f.id, f.why, f.opened_at, (
        SELECT jsonb_agg(jsonb_build_object('id', s.id, 'identities', (
            SELECT coalesce(jsonb_agg(jsonb_build_object('type', i.type, 'value', i.value)
                ORDER BY i.type, i.value), '[]')
            FROM (
                SELECT o.type, o.value FROM livewell.contact_identity o
                WHERE o.tenant = p_tenant AND o.contact_id = s.id ORDER BY o.type, o.value LIMIT 10
            ) i)) ORDER BY s.id)
        FROM unnest(ARRAY[f.one_id, f.other_id]) s (id))
    FROM livewell.contact_conflict f
    WHERE f.tenant = p_tenant AND f.state = 'waiting' AND f.id > coalesce(p_after, 0)
    ORDER BY f.id LIMIT least(greatest(p_limit, 1), 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_contact_conflicts IS 'A page of the conflicts of a tenant that wait for somebody.';
REVOKE ALL ON FUNCTION livewell.list_contact_conflicts FROM PUBLIC;
