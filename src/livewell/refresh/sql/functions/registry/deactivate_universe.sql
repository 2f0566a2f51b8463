-- Leave keys out of the walk of a scheduled type from now on; they keep their data. Answers how
-- many were active.
--
-- Called by: `livewell types universe deactivate`, the API.
CREATE OR REPLACE FUNCTION livewell.deactivate_universe(p_type text, p_keys text[])
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_n         integer;
BEGIN
    PERFORM FROM livewell.universe u
    WHERE u.data_type = v_type.name AND u.key = ANY (p_keys) AND u.active ORDER BY u.key FOR UPDATE;
    UPDATE livewell.universe u SET active = false
    WHERE u.data_type = v_type.name AND u.key = ANY (p_keys) AND u.active;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.deactivate_universe IS
    'Leaves keys out of the walk of a scheduled type.';
REVOKE ALL ON FUNCTION livewell.deactivate_universe FROM PUBLIC;
