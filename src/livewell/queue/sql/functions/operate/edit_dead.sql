-- Mend the payload of a dead letter before it is redriven.
--
-- Called by: mend_dead; clients before 0.8.0.
-- The bound is checked here: a redrive copies the stored form, and a compressed payload looks small
-- to the trigger that measures new jobs.
CREATE OR REPLACE FUNCTION livewell.edit_dead(p_id bigint, p_payload jsonb)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF octet_length(p_payload::text) > 262144 THEN
        RAISE EXCEPTION 'the payload has % bytes; 262144 are allowed', octet_length(p_payload::text)
            USING ERRCODE = 'LW005';
    END IF;
    UPDATE livewell.dead_job d SET payload = p_payload WHERE d.id = p_id;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.edit_dead IS
    'Replaces the payload of one dead letter; false when there is none with that id.';
REVOKE ALL ON FUNCTION livewell.edit_dead FROM PUBLIC;
