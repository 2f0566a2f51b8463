-- The Postgres type of a column, from the closed list; anything else is refused, so that no text of
-- a file becomes SQL.
--
-- Called by: column_bounds(), create_statement(), compare_table().
-- Types are qualified: search_path = '' does not keep pg_temp out of the search for types.
CREATE OR REPLACE FUNCTION livewell.column_type(p_type text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
DECLARE
    v_type text := (CASE p_type
        WHEN 'text' THEN 'pg_catalog.text'
        WHEN 'numeric' THEN 'pg_catalog.numeric'
        WHEN 'bigint' THEN 'pg_catalog.int8'
        WHEN 'integer' THEN 'pg_catalog.int4'
        WHEN 'double' THEN 'pg_catalog.float8'
        WHEN 'boolean' THEN 'pg_catalog.bool'
        WHEN 'date' THEN 'pg_catalog.date'
        WHEN 'timestamptz' THEN 'pg_catalog.timestamptz'
        WHEN 'jsonb' THEN 'pg_catalog.jsonb'
    END);
BEGIN
    IF v_type IS NULL THEN
        RAISE EXCEPTION
            'column type "%": allowed are text, numeric, bigint, integer, double, boolean, date, '
            'timestamptz, jsonb',
            left(p_type, 60)
        USING ERRCODE = 'LW020';
    END IF;
    RETURN v_type;
END
$$;
COMMENT ON FUNCTION livewell.column_type IS
    'The Postgres type of a column of a data table, from the closed list.';
REVOKE ALL ON FUNCTION livewell.column_type FROM PUBLIC;
