-- Mend the payload of a dead letter before it is redriven.
--
-- Called by: CLI `dead edit`, clients.
CREATE OR REPLACE FUNCTION livewell.edit_dead(p_id bigint, p_payload jsonb)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.dead_job d SET payload = p_payload WHERE d.id = p_id;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.edit_dead IS 'Replaces the payload of one dead letter; false when there is none with that id.';
REVOKE ALL ON FUNCTION livewell.edit_dead FROM PUBLIC;
