-- The SQL that gives a column its CHECK, with the bounds as the constraint's comment: that is how
-- the next comparison knows what it says.
--
-- Called by: compare_bounds; compare_table(), create_statement().
CREATE OR REPLACE FUNCTION livewell.bounds_statement(p_name text, p_column jsonb)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT format(
        'ALTER TABLE livewell_data.%1$I ADD CONSTRAINT %2$I CHECK (%3$s); COMMENT ON CONSTRAINT '
        '%2$I ON livewell_data.%1$I IS %4$L;',
        p_name, (p_column ->> 'name') || '_bounds', livewell.column_bounds(p_column),
        p_column ->> 'bounds')
    WHERE livewell.column_bounds(p_column) IS NOT NULL
$$;
COMMENT ON FUNCTION livewell.bounds_statement IS
    'The SQL that adds the CHECK of a column, or NULL.';
REVOKE ALL ON FUNCTION livewell.bounds_statement FROM PUBLIC;
