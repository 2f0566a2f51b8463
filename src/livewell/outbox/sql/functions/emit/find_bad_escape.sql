-- What is wrong with the escapes of a JSON text, or NULL: \u0000 and half of a surrogate pair stand
-- for no character, so receivers could not read them.
--
-- Called by: refuse_event.
-- Types are qualified: functions that run with their owner's rights call it.
CREATE OR REPLACE FUNCTION livewell.find_bad_escape(p_payload json)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    PERFORM p_payload::pg_catalog.jsonb;
    RETURN NULL;
EXCEPTION
    WHEN untranslatable_character OR invalid_text_representation THEN
        RETURN SQLERRM;
    WHEN numeric_value_out_of_range THEN
        -- JSON has larger numbers than jsonb: look for the escapes alone, without \\ before them.
        RETURN substring(
            replace(p_payload::pg_catalog.text, '\\', '') FROM
            '\\u0000'
            '|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})'
            '|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}'
        );
END
$$;
COMMENT ON FUNCTION livewell.find_bad_escape IS
    'What is wrong with the escapes of a JSON text, or NULL.';
REVOKE ALL ON FUNCTION livewell.find_bad_escape FROM PUBLIC;
