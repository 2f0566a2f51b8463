-- Lock the live contacts that answer for some ids, by id; answers one for each, NULL for what is
-- erased or unknown.
--
-- Called by: decide_contact_conflict, erase_contact, unmerge_contact.
-- As in resolve_contact: what was merged while it was waited for is locked again, from a savepoint,
-- so that no lock is taken out of its order.
CREATE OR REPLACE FUNCTION livewell.lock_contacts(p_tenant text, p_ids uuid[])
RETURNS uuid[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_live      pg_catalog.uuid[];
    v_locked    pg_catalog.uuid[];
BEGIN
    FOR v_try IN 1 .. 200 LOOP
        <<once>>
        BEGIN
            v_live := ARRAY(
                SELECT livewell.current_contact(p_tenant, g.id)
                FROM unnest(p_ids) WITH ORDINALITY AS g (id, place) ORDER BY g.place
            );
            v_locked := ARRAY(
                SELECT c.id FROM livewell.contact c
                WHERE c.tenant = p_tenant AND c.id = ANY (v_live) ORDER BY c.id FOR UPDATE
            );
            IF v_live IS NOT DISTINCT FROM ARRAY(
                    SELECT livewell.current_contact(p_tenant, g.id)
                    FROM unnest(p_ids) WITH ORDINALITY AS g (id, place) ORDER BY g.place)
                AND array_remove(v_live, NULL) <@ v_locked THEN
                RETURN v_live;
            END IF;
            RAISE EXCEPTION 'contacts were merged while they were waited for' USING ERRCODE = 'LW030';
        EXCEPTION
            WHEN SQLSTATE 'LW030' THEN NULL;    -- again, without the locks
        END once;
    END LOOP;
    RAISE EXCEPTION 'these contacts were merged 200 times while they were waited for'
        USING ERRCODE = '40001';
END
$$;
COMMENT ON FUNCTION livewell.lock_contacts IS 'Locks the live contacts that answer for some ids, in one order.';
REVOKE ALL ON FUNCTION livewell.lock_contacts FROM PUBLIC;
