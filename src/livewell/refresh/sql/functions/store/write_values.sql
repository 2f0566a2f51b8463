-- Write the rows of some keys into the table of their type. one: one row each; set: these rows and
-- no others; series: these rows beside those that are there.
--
-- Called by: store_values; the store, in its transaction, after it has locked the ledger rows of
--            p_keys in key order. p_rows: [{"key": …, "<column>": …}, …] with every column in each.
-- The statement is made from data_type.columns, as the table is (contract 22): names by %I, values
-- never in the text. Rows that are the same already are not written again.
CREATE OR REPLACE FUNCTION livewell.write_values(
    p_type livewell.data_type, p_keys text[], p_rows jsonb)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_names     text;       -- of all columns
    v_identity  text;       -- of what tells rows apart
    v_given     text;       -- the same of the rows that are given
    v_stored    text;       -- and of those that are there
    v_changes   text;
    v_old       text;
    v_new       text;
    v_written   bigint;
BEGIN
    SELECT string_agg(format('%I', c.name), ', ' ORDER BY c.place),
           concat_ws(
               ', ', 'key',
               string_agg(format('%I', c.name), ', ' ORDER BY c.place) FILTER (WHERE c.in_key)),
        concat_ws(
            ', ', 'r.key',
            string_agg(format('r.%I', c.name), ', ' ORDER BY c.place) FILTER (WHERE c.in_key)),
        concat_ws(
            ', ', 't.key',
            string_agg(format('t.%I', c.name), ', ' ORDER BY c.place) FILTER (WHERE c.in_key)),
        string_agg(
            format('%1$I = excluded.%1$I', c.name), ', '
            ORDER BY c.place) FILTER (WHERE NOT c.in_key),
        string_agg(format('t.%I', c.name), ', ' ORDER BY c.place) FILTER (WHERE NOT c.in_key),
        string_agg(format('excluded.%I', c.name), ', ' ORDER BY c.place) FILTER (WHERE NOT c.in_key)
    INTO v_names, v_identity, v_given, v_stored, v_changes, v_old, v_new
    FROM (
        SELECT e.ordinality AS place, e.value ->> 'name' AS name,
               (e.value ->> 'key')::boolean AS in_key
        FROM jsonb_array_elements(p_type.columns) WITH ORDINALITY AS e (value, ordinality)) AS c;
    IF p_type.rows_kind = 'set' THEN
        EXECUTE format(
            'DELETE FROM livewell_data.%1$I t WHERE t.key = ANY ($1) AND NOT EXISTS (SELECT FROM '
            'jsonb_populate_recordset(NULL::livewell_data.%1$I, $2) AS r WHERE (%2$s) = (%3$s))',
            p_type.name, v_given, v_stored)
        USING p_keys, p_rows;
    END IF;
    EXECUTE format(
        'INSERT INTO livewell_data.%1$I AS t (key, %2$s) SELECT key, %2$s FROM '
        'jsonb_populate_recordset(NULL::livewell_data.%1$I, $2) WHERE key = ANY ($1) ORDER BY %3$s '
        'ON CONFLICT (%3$s) %4$s',
        p_type.name, v_names, v_identity,
        CASE
            WHEN v_changes IS NULL THEN 'DO NOTHING'
            ELSE format(
                'DO UPDATE SET %s WHERE (%s) IS DISTINCT FROM (%s)', v_changes, v_old, v_new)
        END)
    USING p_keys, p_rows;
    GET DIAGNOSTICS v_written = ROW_COUNT;
    RETURN v_written;
END
$$;
COMMENT ON FUNCTION livewell.write_values IS
    'Writes the rows of some keys into the table of their type; answers how many were new or '
    'different.';
REVOKE ALL ON FUNCTION livewell.write_values FROM PUBLIC;
