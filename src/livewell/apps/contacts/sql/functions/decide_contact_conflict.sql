-- What a person says about two contacts that are perhaps one: merge them, whatever the limits say, or
-- keep them apart from now on. NULL: there is no such conflict any more.
--
-- Called by: Contacts.decide, POST /v1/contacts/conflicts/ID.
-- The conflict is read again under the locks of both contacts: each may have been merged meanwhile,
-- and then the conflict is between their successors.
-- Why SECURITY DEFINER: as resolve_contact.
CREATE OR REPLACE FUNCTION livewell.decide_contact_conflict(
    p_tenant text, p_id bigint, p_decision text, p_by text, p_trace text DEFAULT NULL
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_pair      livewell.contact_conflict;
    v_ids       pg_catalog.uuid[];
    v_now       pg_catalog.timestamptz;
    v_winner    pg_catalog.uuid;
BEGIN
    PERFORM livewell.enter_tenant(p_tenant);
    IF p_decision IS NULL OR p_decision NOT IN ('merge', 'apart') THEN
        RAISE EXCEPTION 'decision "%": allowed are merge, apart', left(p_decision, 50)
            USING ERRCODE = 'LW003';
    END IF;
    SELECT f.* INTO v_pair FROM livewell.contact_conflict f
    WHERE f.tenant = p_tenant AND f.id = p_id AND f.state = 'waiting';
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_ids := livewell.lock_contacts(p_tenant, ARRAY[v_pair.one_id, v_pair.other_id]);
    v_now := livewell.now();
    SELECT f.* INTO v_pair FROM livewell.contact_conflict f
    WHERE f.tenant = p_tenant AND f.id = p_id AND f.state = 'waiting'
        AND f.one_id = ANY (v_ids) AND f.other_id = ANY (v_ids);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF p_decision = 'apart' THEN
        UPDATE livewell.contact_conflict f
        SET state = 'apart', decided_at = v_now, decided_by = left(p_by, 200) WHERE f.id = p_id;
    ELSE
        v_winner := livewell.merge_contacts(p_tenant, v_pair.one_id, v_pair.other_id,
            'somebody decided: ' || v_pair.why, p_by, p_trace);
    END IF;
    RETURN jsonb_build_object('conflict', p_id, 'decision', p_decision, 'contact', v_winner,
        'contacts', jsonb_build_array(v_pair.one_id, v_pair.other_id));
END
$$;
COMMENT ON FUNCTION livewell.decide_contact_conflict IS
    'Merges two contacts of a conflict, or keeps them apart; NULL if the conflict is over.';
REVOKE ALL ON FUNCTION livewell.decide_contact_conflict FROM PUBLIC;
