-- One event identity.added for each identity that a call has written, with its contact as the key.
--
-- Called by: settle_identities.
CREATE OR REPLACE FUNCTION livewell.tell_added(
    p_tenant text, p_ready livewell.given_identity[], p_added integer[], p_trace text
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM livewell.tell_contact(p_tenant, 'identity.added', n.contact_id,
        jsonb_build_object('type', n.type, 'value', n.value), p_trace)
    FROM (
        SELECT i.contact_id, i.type, i.value FROM unnest(p_ready) u
        JOIN livewell.contact_identity i
            ON i.tenant = p_tenant AND i.type = u.type AND i.value = u.value
        WHERE u.place = ANY (p_added) ORDER BY u.place
    ) n;
END
$$;
COMMENT ON FUNCTION livewell.tell_added IS 'Emits identity.added for what a call has written.';
REVOKE ALL ON FUNCTION livewell.tell_added FROM PUBLIC;
