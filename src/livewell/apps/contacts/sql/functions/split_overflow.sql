-- New identities above their type's limit per contact get a contact of their own each; join_contacts
-- then finds that they cannot be merged, and asks somebody.
--
-- Called by: settle_identities, which holds the contact's lock.
-- Index:     contact_identity_contact_idx
CREATE OR REPLACE FUNCTION livewell.split_overflow(
    p_tenant text, p_contact uuid, p_ready livewell.given_identity[], p_added integer[], p_trace text
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_over  record;
    v_id    pg_catalog.uuid;
BEGIN
    FOR v_over IN
        SELECT u.type, u.value
        FROM (
            SELECT n.type, n.value, n.max_per_contact,
                row_number() OVER (PARTITION BY n.type ORDER BY n.place) + coalesce(h.n, 0) AS nth
            FROM unnest(p_ready) n
            LEFT JOIN (
                SELECT i.type, count(*) - count(*) FILTER (WHERE i.value = a.value) AS n
                FROM livewell.contact_identity i
                LEFT JOIN unnest(p_ready) a
                    ON a.type = i.type AND a.value = i.value AND a.place = ANY (p_added)
                WHERE i.tenant = p_tenant AND i.contact_id = p_contact GROUP BY i.type
            ) h ON h.type = n.type
            WHERE n.place = ANY (p_added)
        ) u
        WHERE u.nth > u.max_per_contact ORDER BY u.type COLLATE "C", u.value COLLATE "C"
    LOOP
        v_id := livewell.make_contact(p_tenant);
        UPDATE livewell.contact_identity i SET contact_id = v_id
        WHERE i.tenant = p_tenant AND i.type = v_over.type AND i.value = v_over.value;
        PERFORM livewell.tell_contact(p_tenant, 'contact.created', v_id, '{}', p_trace);
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.split_overflow IS 'Gives new identities above a limit contacts of their own.';
REVOKE ALL ON FUNCTION livewell.split_overflow FROM PUBLIC;
