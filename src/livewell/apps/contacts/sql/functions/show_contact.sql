-- One contact for people: what it is known by, what was merged, what waits for a decision. The id of
-- a merged contact answers merged_into, for ever; NULL if no contact ever had the id.
--
-- Called by: find_contact; Contacts.show, GET /v1/contacts/ID.
-- At most 100 identities, and 50 merges, conflicts and older ids.
-- Why SECURITY DEFINER: as resolve_contact.
CREATE OR REPLACE FUNCTION livewell.show_contact(p_tenant text, p_id uuid)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_contact   livewell.contact;
    v_ids       pg_catalog.uuid[];
BEGIN
    PERFORM livewell.enter_tenant(p_tenant);
    SELECT c.* INTO v_contact FROM livewell.contact c WHERE c.tenant = p_tenant AND c.id = p_id;
    IF NOT FOUND THEN
        RETURN (
            SELECT jsonb_build_object('id', a.id, 'since', a.since, 'merged_into', a.merged_into,
                'state', CASE WHEN a.merged_into IS NULL THEN 'erased' ELSE 'merged' END)
            FROM livewell.contact_alias a WHERE a.tenant = p_tenant AND a.id = p_id
        );
    END IF;
    v_ids := ARRAY(
        SELECT a.id FROM livewell.contact_alias a
        WHERE a.tenant = p_tenant AND a.merged_into = p_id ORDER BY a.since DESC, a.id LIMIT 50
    );
    RETURN jsonb_build_object(
        'id', p_id, 'state', 'live', 'created_at', v_contact.created_at, 'fields', v_contact.fields,
        'merged_ids', v_ids,
        'identities', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'type', i.type, 'value', i.value, 'original', i.original, 'added_at', i.added_at)
                ORDER BY i.type, i.value), '[]')
            FROM (
                SELECT o.* FROM livewell.contact_identity o
                WHERE o.tenant = p_tenant AND o.contact_id = p_id ORDER BY o.type, o.value LIMIT 100
            ) i
        ),
        'merges', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'id', m.id, 'winner', m.winner_id, 'loser', m.loser_id, 'merged_at', m.merged_at,
                'why', m.why, 'done_by', m.done_by, 'identities', m.moved, 'undone_at', m.undone_at)
                ORDER BY m.id DESC), '[]')
            FROM (
                SELECT o.* FROM livewell.contact_merge o
                WHERE o.tenant = p_tenant
                    AND (o.winner_id = p_id OR o.loser_id = ANY (p_id || v_ids))
                ORDER BY o.id DESC LIMIT 50
            ) m
        ),
        'conflicts', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'id', f.id, 'state', f.state, 'why', f.why, 'opened_at', f.opened_at,
                'with', CASE WHEN f.one_id = p_id THEN f.other_id ELSE f.one_id END) ORDER BY f.id), '[]')
            FROM (
                SELECT o.* FROM livewell.contact_conflict o
                WHERE o.tenant = p_tenant AND (o.one_id = p_id OR o.other_id = p_id)
                ORDER BY o.id LIMIT 50
            ) f
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.show_contact IS 'A contact with its identities and merges, or where its id leads.';
REVOKE ALL ON FUNCTION livewell.show_contact FROM PUBLIC;
