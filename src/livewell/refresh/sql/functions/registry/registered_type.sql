-- The registry's row of a type; an unknown name is refused.
--
-- Called by: add_universe, clear_ttl, deactivate_universe, list_type_keys, list_universe,
--            list_watched_keys, read_values, set_ttl, show_key; the functions that take a type's
--            name.
CREATE OR REPLACE FUNCTION livewell.registered_type(p_type text)
RETURNS livewell.data_type
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_type livewell.data_type;
BEGIN
    SELECT * INTO v_type FROM livewell.data_type t WHERE t.name = p_type;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'type "%" is not in the registry; see: livewell types list',
            left(p_type, 60)
        USING ERRCODE = 'LW022';
    END IF;
    RETURN v_type;
END
$$;
COMMENT ON FUNCTION livewell.registered_type IS 'The registry''s row of a type, or an error.';
REVOKE ALL ON FUNCTION livewell.registered_type FROM PUBLIC;
