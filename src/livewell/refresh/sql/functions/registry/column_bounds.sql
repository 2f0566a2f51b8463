-- What a column's CHECK says, from its bounds: {min, max, above_min, below_max, max_length,
-- one_of}. NULL: it has none.
--
-- Called by: bounds_statement; create_statement(), compare_table(). Names by %I, values by %L with
--            a cast to the column's type: a bound that is no value of the type fails when the table
--            is made.
CREATE OR REPLACE FUNCTION livewell.column_bounds(p_column jsonb)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
DECLARE
    v_name      text := p_column ->> 'name';
    v_bounds    jsonb := coalesce(p_column -> 'bounds', '{}');
    v_type      text := livewell.column_type(p_column ->> 'type');
BEGIN
    RETURN nullif(concat_ws(' AND ',
        CASE
            WHEN v_bounds ? 'min'
                THEN format(
                    '%I %s %L::%s', v_name,
                    CASE WHEN (v_bounds ->> 'above_min')::boolean THEN '>' ELSE '>=' END,
                    v_bounds ->> 'min', v_type)
        END,
        CASE
            WHEN v_bounds ? 'max'
                THEN format(
                    '%I %s %L::%s', v_name,
                    CASE WHEN (v_bounds ->> 'below_max')::boolean THEN '<' ELSE '<=' END,
                    v_bounds ->> 'max', v_type)
        END,
        CASE
            WHEN v_bounds ? 'max_length'
                THEN format(
                    'pg_catalog.char_length(%I) <= %L::pg_catalog.int4', v_name,
                    v_bounds ->> 'max_length')
        END,
        CASE
            WHEN v_bounds ? 'one_of'
                THEN format(
                    '%I = ANY (%L::pg_catalog.text[])', v_name,
                    ARRAY(SELECT jsonb_array_elements_text(v_bounds -> 'one_of'))::text)
        END), '');
END
$$;
COMMENT ON FUNCTION livewell.column_bounds IS
    'The CHECK expression of a column of a data table, or NULL.';
REVOKE ALL ON FUNCTION livewell.column_bounds FROM PUBLIC;
