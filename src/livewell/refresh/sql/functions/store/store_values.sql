-- Write the rows of good results into the tables of their types, a type at a time, in order of
-- name.
--
-- Called by: store_refreshes. Arrays in one order; where p_rows is NULL there is nothing to write.
-- The planner settings of store_refreshes hold here too.
-- Why the version is read again after writing: applying a type waits for our lock on its table, or
-- we wait for its. If it came first, what we have read is old: 40001, and the next try ends as
-- type_changed.
CREATE OR REPLACE FUNCTION livewell.store_values(
    p_types text[], p_keys text[], p_versions bigint[], p_rows jsonb[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type  livewell.data_type;
BEGIN
    FOR v_type IN
        SELECT d.* FROM livewell.data_type d WHERE d.name = ANY (p_types) ORDER BY d.name
    LOOP
        PERFORM livewell.write_values(v_type, w.keys, w.rows)
        FROM (
            SELECT array_agg(DISTINCT u.key) AS keys,
                   jsonb_agg(r || jsonb_build_object('key', u.key)) AS rows
            FROM unnest(p_types, p_keys, p_rows) AS u (name, key, rows)
            CROSS JOIN LATERAL jsonb_array_elements(u.rows) AS r
            WHERE u.name = v_type.name AND u.rows IS NOT NULL) w
        WHERE w.keys IS NOT NULL;
    END LOOP;
    IF EXISTS (
        SELECT FROM unnest(p_types, p_versions, p_rows) AS u (name, version, rows)
        LEFT JOIN livewell.data_type d ON d.name = u.name
        WHERE u.rows IS NOT NULL AND d.version IS DISTINCT FROM u.version) THEN
        RAISE EXCEPTION 'a type was changed while its values were written' USING ERRCODE = '40001';
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.store_values IS
    'Writes the rows of good results; raises 40001 if a type was changed meanwhile.';
REVOKE ALL ON FUNCTION livewell.store_values FROM PUBLIC;
