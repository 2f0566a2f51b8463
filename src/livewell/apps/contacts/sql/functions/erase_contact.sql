-- Erase a person: the identities, the fields and the evidence of merges go. Of each identity a hash
-- stays, so that a replayed event does not make the person again, and every id of theirs answers that
-- it is erased. NULL: no contact ever had this id.
--
-- Called by: Contacts.erase, DELETE /v1/contacts/ID.
-- The id of a merged contact erases the whole person that it is now. Again: the same answer.
-- Why SECURITY DEFINER: as resolve_contact.
CREATE OR REPLACE FUNCTION livewell.erase_contact(
    p_tenant text, p_id uuid, p_trace text DEFAULT NULL
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_live  pg_catalog.uuid;
    v_ids   pg_catalog.uuid[];
    v_now   pg_catalog.timestamptz;
    v_n     integer := 0;
BEGIN
    PERFORM livewell.enter_tenant(p_tenant);
    v_live := (livewell.lock_contacts(p_tenant, ARRAY[p_id]))[1];
    v_now := livewell.now();
    IF v_live IS NULL THEN
        RETURN (
            SELECT jsonb_build_object('contact', p_id, 'identities', 0, 'ids', jsonb_build_array(p_id),
                'erased_at', a.since)
            FROM livewell.contact_alias a WHERE a.tenant = p_tenant AND a.id = p_id
        );
    END IF;
    v_ids := v_live || ARRAY(
        SELECT a.id FROM livewell.contact_alias a
        WHERE a.tenant = p_tenant AND a.merged_into = v_live ORDER BY a.id
    );
    INSERT INTO livewell.contact_tombstone (tenant, hash, erased_at)
    SELECT p_tenant, livewell.identity_hash(p_tenant, i.type, i.value), v_now
    FROM livewell.contact_identity i WHERE i.tenant = p_tenant AND i.contact_id = v_live
    ON CONFLICT DO NOTHING;
    DELETE FROM livewell.contact_identity i WHERE i.tenant = p_tenant AND i.contact_id = v_live;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    DELETE FROM livewell.contact_merge m
    WHERE m.tenant = p_tenant AND (m.winner_id = ANY (v_ids) OR m.loser_id = ANY (v_ids));
    PERFORM FROM livewell.contact_conflict f
    WHERE f.tenant = p_tenant AND (f.one_id = v_live OR f.other_id = v_live) ORDER BY f.id FOR UPDATE;
    DELETE FROM livewell.contact_conflict f
    WHERE f.tenant = p_tenant AND (f.one_id = v_live OR f.other_id = v_live);
    UPDATE livewell.contact_alias a SET merged_into = NULL, since = v_now
    WHERE a.tenant = p_tenant AND a.merged_into = v_live;
    INSERT INTO livewell.contact_alias (tenant, id, merged_into, since)
    VALUES (p_tenant, v_live, NULL, v_now);
    DELETE FROM livewell.contact c WHERE c.tenant = p_tenant AND c.id = v_live;
    PERFORM livewell.tell_contact(p_tenant, 'contact.erased', g.id, '{}', p_trace)
    FROM unnest(v_ids) g (id);
    RETURN jsonb_build_object('contact', v_live, 'identities', v_n, 'ids', v_ids, 'erased_at', v_now);
END
$$;
COMMENT ON FUNCTION livewell.erase_contact IS
    'Erases a person but for hashes of the identities; every id of theirs answers that it is erased.';
REVOKE ALL ON FUNCTION livewell.erase_contact FROM PUBLIC;
