-- An event about one contact, in this transaction. Its key is the contact's id.
--
-- Called by: erase_contact, put_identity, settle_identities, split_overflow, tell_added, tell_move.
CREATE OR REPLACE FUNCTION livewell.tell_contact(
    p_tenant text, p_topic text, p_key uuid, p_more jsonb, p_trace text DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM livewell.emit_event(p_topic,
        (jsonb_build_object('contact', p_key) || p_more)::pg_catalog.json,
        p_key::pg_catalog.text, p_tenant, p_trace);
END
$$;
COMMENT ON FUNCTION livewell.tell_contact IS 'Emits an event whose key is a contact.';
REVOKE ALL ON FUNCTION livewell.tell_contact FROM PUBLIC;
