-- Take back what a call has just written of an erased person, or with p_revive forget that they were
-- erased. Answers the identities of the call that remain, and the types of those taken back.
--
-- Called by: settle_identities, after write_identities: an insert that waited for erase_contact sees
--            its tombstone only in a statement of its own.
CREATE OR REPLACE FUNCTION livewell.drop_erased(
    p_tenant text, p_ready livewell.given_identity[], p_added integer[], p_revive boolean,
    OUT o_ready livewell.given_identity[], OUT o_added integer[], OUT o_erased text[]
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_gone  integer[];
BEGIN
    o_ready := p_ready;
    o_added := p_added;
    o_erased := '{}';
    IF cardinality(p_added) = 0 THEN
        RETURN;
    END IF;
    v_gone := ARRAY(
        SELECT u.place FROM unnest(p_ready) u
        JOIN livewell.contact_tombstone t ON t.tenant = p_tenant
            AND t.hash = livewell.identity_hash(p_tenant, u.type, u.value)
        WHERE u.place = ANY (p_added)
    );
    IF cardinality(v_gone) = 0 THEN
        RETURN;
    ELSIF p_revive THEN
        DELETE FROM livewell.contact_tombstone t USING unnest(p_ready) u
        WHERE u.place = ANY (v_gone) AND t.tenant = p_tenant
            AND t.hash = livewell.identity_hash(p_tenant, u.type, u.value);
        RETURN;
    END IF;
    DELETE FROM livewell.contact_identity i USING unnest(p_ready) u
    WHERE u.place = ANY (v_gone) AND i.tenant = p_tenant AND i.type = u.type AND i.value = u.value;
    o_erased := ARRAY(SELECT u.type FROM unnest(p_ready) u WHERE u.place = ANY (v_gone) ORDER BY u.place);
    o_added := ARRAY(SELECT a.place FROM unnest(p_added) a (place) WHERE a.place <> ALL (v_gone));
    o_ready := ARRAY(
        SELECT (u.place, u.type, u.value, u.original, u.strength, u.merges,
            u.max_per_contact)::livewell.given_identity
        FROM unnest(p_ready) u WHERE u.place <> ALL (v_gone) ORDER BY u.place
    );
END
$$;
COMMENT ON FUNCTION livewell.drop_erased IS 'Takes back identities of erased people that a call has written.';
REVOKE ALL ON FUNCTION livewell.drop_erased FROM PUBLIC;
