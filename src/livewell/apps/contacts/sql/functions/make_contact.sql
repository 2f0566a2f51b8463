-- A new contact with a random id.
--
-- Called by: settle_identities, split_overflow.
CREATE OR REPLACE FUNCTION livewell.make_contact(p_tenant text)
RETURNS uuid
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_id    pg_catalog.uuid := gen_random_uuid();
BEGIN
    INSERT INTO livewell.contact (tenant, id, created_at) VALUES (p_tenant, v_id, v_now);
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION livewell.make_contact IS 'Makes a contact and answers its id.';
REVOKE ALL ON FUNCTION livewell.make_contact FROM PUBLIC;
