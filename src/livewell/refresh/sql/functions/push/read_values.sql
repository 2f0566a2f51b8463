-- The stored values of some keys: an object for types of one row, a list in the order of the row
-- key for others. Keys without a value are left out.
--
-- Called by: read_readings, read_through; get, watch and the hub. Index: the primary key of the
--            type's table.
-- A series keeps growing: of a longer one the last p_rows_max rows are given.
CREATE OR REPLACE FUNCTION livewell.read_values(
    p_type text, p_keys text[], p_rows_max integer DEFAULT 10000)
RETURNS TABLE (key text, value jsonb)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_name      pg_catalog.text := v_type."name";
    v_order     pg_catalog.text;
BEGIN
    IF v_type.rows_kind = 'one' THEN
        RETURN QUERY EXECUTE format(
            'SELECT t.key, to_jsonb(t) - ''key'' FROM livewell_data.%I t WHERE t.key = ANY ($1) '
            'ORDER BY t.key',
                v_name)
        USING p_keys;
        RETURN;
    END IF;
    SELECT string_agg(
        format('%I', e.value ->> 'name'), ', ' ORDER BY e.ordinality)
        FILTER (WHERE (e.value ->> 'key')::boolean)
    INTO v_order
    FROM jsonb_array_elements(v_type.columns) WITH ORDINALITY AS e (value, ordinality);
    RETURN QUERY EXECUTE format(
        'SELECT k.key, v.rows FROM (SELECT DISTINCT u.key FROM unnest($1) AS u (key)) AS k CROSS '
        'JOIN LATERAL (SELECT jsonb_agg(to_jsonb(r) - ''key'' ORDER BY %2$s) AS rows '
        'FROM (SELECT * FROM livewell_data.%1$I t WHERE t.key = k.key ORDER BY %3$s LIMIT $2) AS '
        'r) AS v WHERE v.rows IS NOT NULL ORDER BY k.key',
        v_name, v_order,
        (
            SELECT string_agg(
                format('%I DESC', e.value ->> 'name'), ', ' ORDER BY e.ordinality)
                FILTER (WHERE (e.value ->> 'key')::boolean)
                               FROM jsonb_array_elements(v_type.columns) WITH ORDINALITY AS e (
                                   value, ordinality)))
    USING p_keys, p_rows_max;
END
$$;
COMMENT ON FUNCTION livewell.read_values IS 'The stored values of some keys of a type.';
REVOKE ALL ON FUNCTION livewell.read_values FROM PUBLIC;
