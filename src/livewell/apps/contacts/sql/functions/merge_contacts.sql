-- Make one contact of two: the older one stays, and answers for the other's id for ever.
--
-- Called by: join_contacts, decide_contact_conflict; both hold the locks of both contacts.
-- What came from whom is recorded, so that unmerge_contact can give it back.
-- The rows of aliases and identities of a contact are written only by who holds its lock, so nothing
-- here waits for a transaction that waits for us; of conflicts see move_conflicts.
CREATE OR REPLACE FUNCTION livewell.merge_contacts(
    p_tenant text, p_one uuid, p_other uuid, p_why text, p_by text, p_trace text
)
RETURNS uuid
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_winner    livewell.contact;
    v_loser     livewell.contact;
    v_moved     pg_catalog.jsonb;
    v_gained    pg_catalog.text[];
    v_aliases   pg_catalog.uuid[];
    v_merge     bigint;
BEGIN
    SELECT c.* INTO v_winner FROM livewell.contact c
    WHERE c.tenant = p_tenant AND c.id IN (p_one, p_other) ORDER BY c.created_at, c.id LIMIT 1;
    SELECT c.* INTO v_loser FROM livewell.contact c
    WHERE c.tenant = p_tenant AND c.id IN (p_one, p_other) AND c.id <> v_winner.id;

    WITH moved AS (
        UPDATE livewell.contact_identity i SET contact_id = v_winner.id
        WHERE i.tenant = p_tenant AND i.contact_id = v_loser.id RETURNING i.type, i.value
    )
    SELECT coalesce(jsonb_agg(jsonb_build_array(m.type, m.value) ORDER BY m.type, m.value), '[]')
    INTO v_moved FROM moved m;
    v_gained := ARRAY(
        SELECT k.key FROM jsonb_object_keys(v_loser.fields) k (key)
        WHERE NOT v_winner.fields ? k.key ORDER BY k.key
    );
    IF cardinality(v_gained) > 0 THEN
        UPDATE livewell.contact c SET fields = v_loser.fields || c.fields
        WHERE c.tenant = p_tenant AND c.id = v_winner.id;
    END IF;
    WITH moved AS (
        UPDATE livewell.contact_alias a SET merged_into = v_winner.id
        WHERE a.tenant = p_tenant AND a.merged_into = v_loser.id RETURNING a.id
    )
    SELECT coalesce(array_agg(m.id ORDER BY m.id), '{}') INTO v_aliases FROM moved m;
    PERFORM livewell.move_conflicts(p_tenant, v_loser.id, v_winner.id);
    INSERT INTO livewell.contact_alias (tenant, id, merged_into, since)
    VALUES (p_tenant, v_loser.id, v_winner.id, v_now);
    DELETE FROM livewell.contact c WHERE c.tenant = p_tenant AND c.id = v_loser.id;

    INSERT INTO livewell.contact_merge AS m
        (tenant, winner_id, loser_id, loser_born_at, merged_at, why, done_by, moved, fields, gained, aliases)
    VALUES (p_tenant, v_winner.id, v_loser.id, v_loser.created_at, v_now, left(p_why, 500),
        left(p_by, 200), v_moved, v_loser.fields, v_gained, v_aliases)
    RETURNING m.id INTO v_merge;
    PERFORM livewell.tell_move(p_tenant, 'contact.merged', v_winner.id, v_loser.id,
        jsonb_build_object('merge', v_merge, 'identities', v_moved, 'why', p_why), p_trace);
    RETURN v_winner.id;
END
$$;
COMMENT ON FUNCTION livewell.merge_contacts IS 'Merges two locked contacts into the older one, which it answers.';
REVOKE ALL ON FUNCTION livewell.merge_contacts FROM PUBLIC;
