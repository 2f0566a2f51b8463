-- How the CHECK constraints of a type's live table differ from the bounds of its columns, with the
-- SQL that would end each difference.
--
-- Called by: compare_table. place: that of the column; 999 for a constraint that no column has.
-- A constraint is named <column>_bounds, and its comment has the bounds it was made from.
CREATE OR REPLACE FUNCTION livewell.compare_bounds(p_name text, p_columns jsonb, p_table oid)
RETURNS TABLE (place bigint, what text, additive boolean, statement text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH wanted AS (
        SELECT c.ordinality AS place, c.value AS declared, c.value ->> 'name' AS name,
               livewell.bounds_statement(p_name, c.value) AS bounds
        FROM jsonb_array_elements(p_columns) WITH ORDINALITY AS c (value, ordinality)
        UNION ALL
        SELECT 0, NULL, 'key', NULL
    ), live_check AS (
        SELECT k.conname::text AS name, obj_description(k.oid, 'pg_constraint') AS bounds,
               k.convalidated AS valid
        FROM pg_catalog.pg_constraint k
        WHERE k.conrelid = p_table AND k.contype = 'c'
    )
    SELECT w.place,
           format('the bounds of column "%s" are %s in the table and %s in the definition', w.name,
                  coalesce(k.bounds, CASE WHEN k.name IS NULL THEN 'none' ELSE 'unknown' END),
                  CASE WHEN w.bounds IS NULL THEN 'none' ELSE w.declared ->> 'bounds' END),
           w.bounds IS NULL OR coalesce(
               k.valid AND livewell.bounds_widened(
                   k.bounds, w.declared -> 'bounds', w.declared ->> 'type'), false),
           concat_ws(' ',
               format('ALTER TABLE livewell_data.%I DROP CONSTRAINT IF EXISTS %I;',
                      p_name, w.name || '_bounds'),
               w.bounds)
    FROM wanted w
    -- A column that is missing is added with its bounds.
    JOIN pg_catalog.pg_attribute a
         ON a.attrelid = p_table AND a.attname = w.name AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN live_check k ON k.name = w.name || '_bounds'
    WHERE w.place > 0 AND (k.name IS NOT NULL) <> (w.bounds IS NOT NULL)
       OR k.name IS NOT NULL
          AND (k.bounds IS DISTINCT FROM (w.declared ->> 'bounds') OR NOT k.valid)
    UNION ALL
    SELECT 999, format('constraint "%s" is in the table and not in the definition', k.name), false,
           format('ALTER TABLE livewell_data.%I DROP CONSTRAINT IF EXISTS %I;', p_name, k.name)
    FROM live_check k
    WHERE NOT EXISTS (SELECT FROM wanted w WHERE w.name || '_bounds' = k.name);
END
$$;
COMMENT ON FUNCTION livewell.compare_bounds IS
    'Differences between the CHECK constraints of a type''s live table and the bounds of its '
    'columns.';
REVOKE ALL ON FUNCTION livewell.compare_bounds FROM PUBLIC;
