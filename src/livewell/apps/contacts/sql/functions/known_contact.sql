-- The answer if there is nothing to do: all identities are known, and of one contact, whose fields
-- are as given. NULL otherwise.
--
-- Called by: resolve_contact.
-- Index:     contact_identity_pkey, contact_pkey
CREATE OR REPLACE FUNCTION livewell.known_contact(
    p_tenant text, p_ready livewell.given_identity[], p_fields jsonb
)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_ids   pg_catalog.uuid[];
BEGIN
    SELECT array_agg(i.contact_id) INTO v_ids
    FROM unnest(p_ready) u
    JOIN livewell.contact_identity i
        ON i.tenant = p_tenant AND i.type = u.type AND i.value = u.value;
    IF cardinality(v_ids) IS DISTINCT FROM cardinality(p_ready) OR v_ids[1] <> ANY (v_ids) THEN
        RETURN NULL;
    END IF;
    IF p_fields IS NOT NULL AND NOT (
        SELECT c.fields || p_fields = c.fields FROM livewell.contact c
        WHERE c.tenant = p_tenant AND c.id = v_ids[1]) THEN
        RETURN NULL;
    END IF;
    RETURN livewell.contact_answer('found', v_ids[1]);
END
$$;
COMMENT ON FUNCTION livewell.known_contact IS 'The answer of resolve_contact where nothing is to be written.';
REVOKE ALL ON FUNCTION livewell.known_contact FROM PUBLIC;
