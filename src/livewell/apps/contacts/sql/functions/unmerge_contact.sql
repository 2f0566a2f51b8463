-- Take a merge back, within 90 days: the contact that was merged away lives again with the identities,
-- fields and older ids that it brought. NULL: there is no such merge, or somebody of it was erased.
--
-- Called by: Contacts.unmerge, POST /v1/contacts/merges/ID/undo.
-- What arrived later stays with the contact that answers for both now; the answer says what that is,
-- and what could not be given back because it is elsewhere or was changed. Asked again it answers the
-- same. The two are kept apart from then on, or their next common event would merge them again.
-- Why SECURITY DEFINER: as resolve_contact.
CREATE OR REPLACE FUNCTION livewell.unmerge_contact(
    p_tenant text, p_merge bigint, p_by text, p_trace text DEFAULT NULL
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_merge     livewell.contact_merge;
    v_from      pg_catalog.uuid;
    v_now       pg_catalog.timestamptz;
    v_back      pg_catalog.jsonb;
    v_stayed    pg_catalog.jsonb;
    v_kept      pg_catalog.text[];
BEGIN
    PERFORM livewell.enter_tenant(p_tenant);
    SELECT m.* INTO v_merge FROM livewell.contact_merge m WHERE m.tenant = p_tenant AND m.id = p_merge;
    IF v_merge.undone IS NOT NULL OR v_merge.id IS NULL THEN
        RETURN v_merge.undone;
    END IF;
    v_from := (livewell.lock_contacts(p_tenant, ARRAY[v_merge.loser_id]))[1];
    v_now := livewell.now();
    SELECT m.* INTO v_merge FROM livewell.contact_merge m WHERE m.tenant = p_tenant AND m.id = p_merge;
    IF v_merge.undone IS NOT NULL OR v_merge.id IS NULL OR v_from IS NULL THEN
        RETURN v_merge.undone;
    ELSIF v_merge.merged_at < v_now - interval '90 days' THEN
        RAISE EXCEPTION 'merge % is of %: a merge can be undone for 90 days', p_merge, v_merge.merged_at
            USING ERRCODE = 'LW003';
    END IF;

    INSERT INTO livewell.contact (tenant, id, created_at, fields)
    VALUES (p_tenant, v_merge.loser_id, v_merge.loser_born_at, v_merge.fields);
    WITH back AS (
        UPDATE livewell.contact_identity i SET contact_id = v_merge.loser_id
        FROM jsonb_array_elements(v_merge.moved) m (pair)
        WHERE i.tenant = p_tenant AND i.contact_id = v_from
            AND i.type = m.pair ->> 0 AND i.value = m.pair ->> 1
        RETURNING i.type, i.value
    )
    SELECT coalesce(jsonb_agg(jsonb_build_array(b.type, b.value) ORDER BY b.type, b.value), '[]')
    INTO v_back FROM back b;
    DELETE FROM livewell.contact_alias a WHERE a.tenant = p_tenant AND a.id = v_merge.loser_id;
    UPDATE livewell.contact_alias a SET merged_into = v_merge.loser_id
    WHERE a.tenant = p_tenant AND a.id = ANY (v_merge.aliases) AND a.merged_into = v_from;
    v_kept := ARRAY(
        SELECT g.key FROM unnest(v_merge.gained) g (key)
        JOIN livewell.contact c ON c.tenant = p_tenant AND c.id = v_from
        WHERE c.fields -> g.key IS DISTINCT FROM v_merge.fields -> g.key ORDER BY g.key
    );
    UPDATE livewell.contact c SET fields = c.fields - ARRAY(
        SELECT g.key FROM unnest(v_merge.gained) g (key) WHERE g.key <> ALL (v_kept))
    WHERE c.tenant = p_tenant AND c.id = v_from AND cardinality(v_merge.gained) > 0;
    INSERT INTO livewell.contact_conflict
        (tenant, one_id, other_id, state, why, opened_at, decided_at, decided_by)
    VALUES (p_tenant, least(v_from, v_merge.loser_id), greatest(v_from, v_merge.loser_id), 'apart',
        format('merge %s was undone', p_merge), v_now, v_now, left(p_by, 200));

    SELECT coalesce(jsonb_agg(jsonb_build_array(s.type, s.value) ORDER BY s.type, s.value), '[]')
    INTO v_stayed
    FROM (
        SELECT i.type, i.value FROM livewell.contact_identity i
        WHERE i.tenant = p_tenant AND i.contact_id = v_from AND i.added_at > v_merge.merged_at
        ORDER BY i.type, i.value LIMIT 1000
    ) s;
    v_back := jsonb_build_object(
        'merge', p_merge, 'winner', v_from, 'loser', v_merge.loser_id, 'restored', v_back,
        'stayed', v_stayed, 'fields_not_split', v_kept, 'not_split', (
            SELECT coalesce(jsonb_agg(m.pair), '[]') FROM jsonb_array_elements(v_merge.moved) m (pair)
            WHERE NOT v_back @> jsonb_build_array(m.pair)));
    UPDATE livewell.contact_merge m SET undone_at = v_now, undone = v_back WHERE m.id = p_merge;
    PERFORM livewell.tell_move(p_tenant, 'contact.unmerged', v_from, v_merge.loser_id,
        jsonb_build_object('merge', p_merge, 'identities', v_back -> 'restored'), p_trace);
    RETURN v_back;
END
$$;
COMMENT ON FUNCTION livewell.unmerge_contact IS
    'Undoes a merge of the last 90 days, and answers what came back, what stayed and what could not be split.';
REVOKE ALL ON FUNCTION livewell.unmerge_contact FROM PUBLIC;
