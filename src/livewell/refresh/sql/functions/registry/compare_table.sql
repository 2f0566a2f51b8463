-- How the live table of a type differs from its columns, with the SQL that would end each
-- difference. No rows: they agree (contract 22).
--
-- Called by: apply_type(), which runs what is additive and refuses the rest; `livewell types
--            check`, which only tells.
-- Additive: a missing table, a new nullable column, a column that may now be null, bounds that
-- allow all they did. Everything else could lose or refuse data that is there.
CREATE OR REPLACE FUNCTION livewell.compare_table(p_name text, p_columns jsonb)
RETURNS TABLE (what text, additive boolean, statement text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_table     oid := (
        SELECT c.oid FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'livewell_data' AND c.relname = p_name AND c.relkind IN ('r', 'p'));
BEGIN
    IF v_table IS NULL THEN
        RETURN QUERY
        SELECT format('table livewell_data.%I does not exist', p_name), true,
               livewell.create_statement(p_name, p_columns);
        RETURN;
    END IF;
    RETURN QUERY
    WITH wanted AS (
        SELECT c.ordinality AS place, c.value AS declared, c.value ->> 'name' AS name,
               livewell.column_type(c.value ->> 'type') AS type,
               (c.value ->> 'nullable')::boolean AS nullable,
               (c.value ->> 'key')::boolean AS in_key,
               livewell.bounds_statement(p_name, c.value) AS bounds
        FROM jsonb_array_elements(p_columns) WITH ORDINALITY AS c (value, ordinality)
        UNION ALL
        SELECT 0, NULL, 'key', 'pg_catalog.text', false, true, NULL
    ), live AS (
        SELECT a.attname::text AS name, a.atttypid AS type, NOT a.attnotnull AS nullable
        FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = v_table AND a.attnum > 0 AND NOT a.attisdropped
    ), primary_key AS (
        SELECT k.conname::text AS name, ARRAY(
                   SELECT a.attname::text
                   FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, place)
                   JOIN pg_catalog.pg_attribute a
                        ON a.attrelid = v_table AND a.attnum = u.attnum
                   ORDER BY u.place) AS names
        FROM pg_catalog.pg_constraint k
        WHERE k.conrelid = v_table AND k.contype = 'p'
    ), wanted_key AS (
        SELECT array_agg(w.name ORDER BY w.place) AS names FROM wanted w WHERE w.in_key
    ), difference AS (
        SELECT w.place, format('column "%s" is missing', w.name) AS what,
               w.nullable AND NOT w.in_key AS additive,
               format(
                   'ALTER TABLE livewell_data.%I ADD COLUMN %I %s%s;', p_name, w.name, w.type,
                   CASE w.type WHEN 'pg_catalog.text' THEN ' COLLATE pg_catalog."C"' ELSE '' END)
               || coalesce(' ' || w.bounds, '')
               || CASE WHEN w.nullable THEN '' ELSE format(
                      ' UPDATE livewell_data.%1$I SET %2$I = /* a value for the rows there are */;'
                      ' ALTER TABLE livewell_data.%1$I ALTER COLUMN %2$I SET NOT NULL;',
                      p_name, w.name) END AS statement
        FROM wanted w LEFT JOIN live l USING (name) WHERE l.name IS NULL
        UNION ALL
        SELECT 1000, format('column "%s" is in the table and not in the definition', l.name), false,
               format('ALTER TABLE livewell_data.%I DROP COLUMN %I;', p_name, l.name)
        FROM live l LEFT JOIN wanted w USING (name) WHERE w.name IS NULL
        UNION ALL
        SELECT w.place,
               format('column "%s" is %s in the table and %s in the definition',
                      w.name, l.type::regtype, to_regtype(w.type)),
               false,
               format(
                   'ALTER TABLE livewell_data.%1$I ALTER COLUMN %2$I TYPE %3$s USING %2$I::%3$s;',
                      p_name, w.name, w.type)
        FROM wanted w JOIN live l USING (name) WHERE l.type <> to_regtype(w.type)
        UNION ALL
        SELECT w.place,
               format('column "%s" is %s in the table and %s in the definition', w.name,
                      CASE WHEN l.nullable THEN 'nullable' ELSE 'NOT NULL' END,
                      CASE WHEN w.nullable THEN 'nullable' ELSE 'NOT NULL' END),
               w.nullable,
               format('ALTER TABLE livewell_data.%I ALTER COLUMN %I %s NOT NULL;', p_name, w.name,
                      CASE WHEN w.nullable THEN 'DROP' ELSE 'SET' END)
        FROM wanted w JOIN live l USING (name) WHERE l.nullable <> w.nullable
        UNION ALL
        SELECT b.place, b.what, b.additive, b.statement
        FROM livewell.compare_bounds(p_name, p_columns, v_table) AS b
        UNION ALL
        SELECT 1002,
               format('the primary key is (%s) in the table and (%s) in the definition',
                      array_to_string(p.names, ', '), array_to_string(wk.names, ', ')),
               false,
               concat_ws(' ',
                   CASE WHEN p.name IS NOT NULL THEN
                       format(
                           'ALTER TABLE livewell_data.%I DROP CONSTRAINT %I;', p_name, p.name) END,
                   format('ALTER TABLE livewell_data.%I ADD PRIMARY KEY (%s);', p_name, (
                       SELECT string_agg(format('%I', n), ', ') FROM unnest(wk.names) AS n)))
        FROM wanted_key wk LEFT JOIN primary_key p ON true WHERE p.names IS DISTINCT FROM wk.names
    )
    SELECT d.what, d.additive, d.statement FROM difference d ORDER BY d.place, d.what;
END
$$;
COMMENT ON FUNCTION livewell.compare_table IS
    'Differences between the live table of a type and its columns, each with the SQL that ends it.';
REVOKE ALL ON FUNCTION livewell.compare_table FROM PUBLIC;
