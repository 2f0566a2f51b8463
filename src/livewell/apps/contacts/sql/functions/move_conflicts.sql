-- The conflicts of a contact become those of the one that it is merged into.
--
-- Called by: merge_contacts.
-- Index:     contact_conflict_pair_key, contact_conflict_other_idx
-- Why all rows are locked first, by number: the other contact of a row may be merged at the same
-- time by somebody who needs the same rows.
CREATE OR REPLACE FUNCTION livewell.move_conflicts(p_tenant text, p_from uuid, p_to uuid)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_row   livewell.contact_conflict;
    v_third pg_catalog.uuid;
    v_there bigint;
BEGIN
    PERFORM FROM livewell.contact_conflict f
    WHERE f.tenant = p_tenant
        AND (f.one_id IN (p_from, p_to) OR f.other_id IN (p_from, p_to))
    ORDER BY f.id FOR UPDATE;
    FOR v_row IN
        SELECT f.* FROM livewell.contact_conflict f
        WHERE f.tenant = p_tenant AND (f.one_id = p_from OR f.other_id = p_from) ORDER BY f.id
    LOOP
        v_third := CASE WHEN v_row.one_id = p_from THEN v_row.other_id ELSE v_row.one_id END;
        SELECT f.id INTO v_there FROM livewell.contact_conflict f
        WHERE f.tenant = p_tenant AND f.one_id = least(v_third, p_to)
            AND f.other_id = greatest(v_third, p_to);
        IF v_third <> p_to AND v_there IS NULL THEN
            UPDATE livewell.contact_conflict f
            SET one_id = least(v_third, p_to), other_id = greatest(v_third, p_to)
            WHERE f.id = v_row.id;
            CONTINUE;
        END IF;
        UPDATE livewell.contact_conflict f
        SET state = 'apart', decided_at = v_row.decided_at, decided_by = v_row.decided_by
        WHERE f.id = v_there AND v_third <> p_to AND v_row.state = 'apart' AND f.state <> 'apart';
        DELETE FROM livewell.contact_conflict f WHERE f.id = v_row.id;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.move_conflicts IS 'Gives the conflicts of a contact to the one it is merged into.';
REVOKE ALL ON FUNCTION livewell.move_conflicts FROM PUBLIC;
