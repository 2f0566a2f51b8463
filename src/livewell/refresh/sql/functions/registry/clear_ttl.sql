-- Take the time to live of its own from a key: that of the type holds again, at once. Answers
-- whether it had one.
--
-- Called by: `livewell types ttl clear`, the API.
CREATE OR REPLACE FUNCTION livewell.clear_ttl(p_type text, p_key text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type livewell.data_type := livewell.registered_type(p_type);
BEGIN
    IF NOT EXISTS (
        SELECT FROM livewell.ledger l
        WHERE l.data_type = v_type.name AND l.key = p_key AND l.ttl_override IS NOT NULL) THEN
        RETURN false;
    END IF;
    PERFORM livewell.set_ttl(p_type, p_key, NULL);
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.clear_ttl IS 'Takes the time to live of its own from a key.';
REVOKE ALL ON FUNCTION livewell.clear_ttl FROM PUBLIC;
