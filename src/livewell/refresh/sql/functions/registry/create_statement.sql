-- The SQL that makes the table of a type: key, then the columns in their order; one row per key, or
-- per key and row key.
--
-- Called by: compare_table(). p_columns is data_type.columns: [{name, type, nullable, key,
--            bounds}].
-- The primary key has no name of ours: it shares a namespace with tables, and another type may be
-- called that.
CREATE OR REPLACE FUNCTION livewell.create_statement(p_name text, p_columns jsonb)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT format(
        'CREATE TABLE livewell_data.%I (key pg_catalog.text COLLATE pg_catalog."C" NOT NULL, %s, '
        'PRIMARY KEY (%s)) WITH (fillfactor = 80);',
            p_name,
            string_agg(
                format('%I %s%s%s', c.value ->> 'name', livewell.column_type(c.value ->> 'type'),
                CASE c.value ->> 'type' WHEN 'text' THEN ' COLLATE pg_catalog."C"' ELSE '' END,
                CASE
                    WHEN (c.value ->> 'nullable')::boolean THEN ''
                    ELSE ' NOT NULL'
                END), ', ' ORDER BY c.ordinality),
            concat_ws(
                ', ', 'key',
                string_agg(
                    format('%I', c.value ->> 'name'), ', ' ORDER BY c.ordinality)
                    FILTER (WHERE (c.value ->> 'key')::boolean)))
        || coalesce(
            ' '
                || string_agg(
                    livewell.bounds_statement(p_name, c.value), ' ' ORDER BY c.ordinality),
            '')
    FROM jsonb_array_elements(p_columns) WITH ORDINALITY AS c (value, ordinality)
$$;
COMMENT ON FUNCTION livewell.create_statement IS 'The SQL that makes the table of a type.';
REVOKE ALL ON FUNCTION livewell.create_statement FROM PUBLIC;
