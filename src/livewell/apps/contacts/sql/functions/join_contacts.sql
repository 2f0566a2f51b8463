-- Merge the contacts of one call, as far as the policies of the linking identities allow it.
--
--      auto on both sides ──▶ merged, unless a limit would be broken (a conflict) or they are kept apart
--      ask on one side ──▶ a conflict, for a person          never on one side ──▶ nothing
--
-- Called by: settle_identities, which holds the locks of all of them.
CREATE OR REPLACE FUNCTION livewell.join_contacts(
    p_tenant text, p_contact uuid, p_ready livewell.given_identity[], p_trace text,
    OUT o_merged uuid[], OUT o_conflicts bigint[]
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_side      record;
    v_contact   pg_catalog.uuid := p_contact;
    v_winner    pg_catalog.uuid;
    v_first     record;
    v_refusal   pg_catalog.text;
    v_conflict  bigint;
BEGIN
    o_merged := '{}';
    o_conflicts := '{}';
    FOR v_side IN
        SELECT i.contact_id, bool_or(u.merges = 'auto') AS is_auto,
            bool_or(u.merges <> 'never') AS is_linked,
            string_agg(DISTINCT u.type, ', ') AS types
        FROM unnest(p_ready) u
        JOIN livewell.contact_identity i
            ON i.tenant = p_tenant AND i.type = u.type AND i.value = u.value
        JOIN livewell.contact c ON c.tenant = i.tenant AND c.id = i.contact_id
        GROUP BY i.contact_id
        ORDER BY i.contact_id = p_contact DESC, max(u.strength) DESC, min(c.created_at), i.contact_id
    LOOP
        IF v_side.contact_id = p_contact THEN
            v_first := v_side;
            CONTINUE;
        ELSIF NOT (v_first.is_linked AND v_side.is_linked) THEN
            CONTINUE;
        END IF;
        v_refusal := livewell.merge_refusal(p_tenant, v_contact, v_side.contact_id);
        IF v_refusal = 'apart' THEN
            CONTINUE;
        ELSIF v_refusal IS NULL AND v_first.is_auto AND v_side.is_auto THEN
            v_winner := livewell.merge_contacts(p_tenant, v_contact, v_side.contact_id,
                'linked by ' || v_first.types || ' and ' || v_side.types, 'resolve', p_trace);
            o_merged := o_merged
                || CASE WHEN v_winner = v_contact THEN v_side.contact_id ELSE v_contact END;
            v_contact := v_winner;
        ELSE
            v_conflict := livewell.open_conflict(p_tenant, v_contact, v_side.contact_id,
                coalesce(v_refusal, 'linked by ' || v_first.types || ' and ' || v_side.types
                    || ', of which one says: ask'));
            o_conflicts := o_conflicts || v_conflict;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.join_contacts IS 'Merges the contacts of a call, or opens conflicts for people.';
REVOKE ALL ON FUNCTION livewell.join_contacts FROM PUBLIC;
