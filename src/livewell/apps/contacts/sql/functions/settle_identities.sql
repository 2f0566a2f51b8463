-- Write, lock, decide: resolve_contact where something is to be written, from one savepoint.
--
--      write the identities that are new ──▶ lock the contacts by id ──▶ where do the new ones go?
--          ──▶ those above a limit into contacts of their own ──▶ merge the rest, or ask somebody
--
-- Called by: resolve_contact.
-- The new identities are written for the contact that will probably have them (v_home); once all are
-- locked it is looked again. A contact that was made for nothing is deleted: nobody has seen it.
CREATE OR REPLACE FUNCTION livewell.settle_identities(
    p_tenant text, p_ready livewell.given_identity[], p_fields jsonb, p_revive boolean, p_trace text
)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_ready     livewell.given_identity[];
    v_home      pg_catalog.uuid := livewell.find_home(p_tenant, p_ready, '{}');
    v_is_made   boolean := v_home IS NULL;
    v_added     integer[];
    v_erased    pg_catalog.text[];
    v_held      pg_catalog.uuid[];
    v_contact   pg_catalog.uuid;
    v_merged    pg_catalog.uuid[];
    v_conflicts bigint[];
BEGIN
    IF v_is_made THEN
        v_home := livewell.make_contact(p_tenant);
    END IF;
    v_added := livewell.write_identities(p_tenant, p_ready, v_home);
    SELECT d.o_ready, d.o_added, d.o_erased INTO v_ready, v_added, v_erased
    FROM livewell.drop_erased(p_tenant, p_ready, v_added, p_revive) d;
    v_held := livewell.lock_held(p_tenant, v_ready);

    -- Of an erased person nothing is made, but who is known by another identity is still known.
    IF cardinality(v_erased) > 0 AND cardinality(v_added) = cardinality(v_ready) THEN
        DELETE FROM livewell.contact_identity i USING unnest(v_ready) u
        WHERE i.tenant = p_tenant AND i.type = u.type AND i.value = u.value;
        IF v_is_made THEN
            DELETE FROM livewell.contact c WHERE c.tenant = p_tenant AND c.id = v_home;
        END IF;
        RETURN livewell.contact_answer('erased', p_erased => v_erased);
    END IF;

    v_contact := livewell.find_home(p_tenant, v_ready, v_added);
    IF cardinality(v_added) = 0 THEN
        v_contact := coalesce(v_contact, livewell.strongest_contact(p_tenant, v_ready));
    ELSIF v_contact <> v_home THEN
        UPDATE livewell.contact_identity i SET contact_id = v_contact FROM unnest(v_ready) u
        WHERE u.place = ANY (v_added) AND i.tenant = p_tenant AND i.type = u.type AND i.value = u.value;
    ELSE
        v_contact := v_home;
    END IF;
    IF v_is_made AND v_contact <> v_home THEN
        DELETE FROM livewell.contact c WHERE c.tenant = p_tenant AND c.id = v_home;
        v_is_made := false;
    END IF;

    IF cardinality(v_added) > 0 THEN
        IF v_is_made THEN
            PERFORM livewell.tell_contact(p_tenant, 'contact.created', v_contact, '{}', p_trace);
        END IF;
        PERFORM livewell.split_overflow(p_tenant, v_contact, v_ready, v_added, p_trace);
        PERFORM livewell.tell_added(p_tenant, v_ready, v_added, p_trace);
    END IF;
    -- From where the same call would begin next time, now that all of it is known: else it would find
    -- something to merge once more.
    v_contact := coalesce(livewell.find_home(p_tenant, v_ready, '{}'),
        livewell.strongest_contact(p_tenant, v_ready));
    SELECT j.o_merged, j.o_conflicts INTO v_merged, v_conflicts
    FROM livewell.join_contacts(p_tenant, v_contact, v_ready, p_trace) j;

    v_contact := livewell.strongest_contact(p_tenant, v_ready);
    IF p_fields IS NOT NULL THEN
        UPDATE livewell.contact c SET fields = c.fields || p_fields
        WHERE c.tenant = p_tenant AND c.id = v_contact AND c.fields || p_fields <> c.fields;
    END IF;
    RETURN livewell.contact_answer(
        CASE
            WHEN cardinality(v_merged) > 0 THEN 'merged'
            WHEN cardinality(v_conflicts) > 0 THEN 'conflict'
            WHEN v_is_made THEN 'created'
            WHEN cardinality(v_added) > 0 THEN 'added'
            ELSE 'found'
        END, v_contact, cardinality(v_added), v_merged, v_conflicts, v_erased);
END
$$;
COMMENT ON FUNCTION livewell.settle_identities IS
    'Writes new identities, locks all contacts that are concerned, and merges what may be merged.';
REVOKE ALL ON FUNCTION livewell.settle_identities FROM PUBLIC;
