-- Grant what a matrix of rights says: one line per object, one column per role.
--
--     object                  api     hub     operate worker  readonly
--     table queue             -       -       rw      raw     r
--     table schedule          -       -       rw(asked_at,paused_at)  raw  r
--     function claim_jobs     -       -       -       X       -
--
-- Called by: grants.sql of each package, as the owner; nobody else may.
-- Letters:   those that Postgres prints: r SELECT, a INSERT, w UPDATE, d DELETE, X EXECUTE, U USAGE;
--            behind a letter, in parentheses, the columns it is for. A dash: nothing.
-- Objects:   table, sequence, function or schema; all but the schema are in schema livewell.
-- GRANT only adds. To take a right away, take it out of the matrix and write a REVOKE below it.
CREATE OR REPLACE FUNCTION livewell.grant_rights(p_matrix text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET lock_timeout = '100ms'
AS $$
DECLARE
    c_letters   CONSTANT jsonb := '{
        "r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE", "X": "EXECUTE", "U": "USAGE"
    }';
    v_roles     text[];
    v_line      text[];
    v_rights    text;
BEGIN
    FOR v_line IN
        SELECT regexp_split_to_array(trim(l.line), '\s+')
        FROM regexp_split_to_table(p_matrix, '\n') WITH ORDINALITY AS l (line, place)
        WHERE l.line !~ '^\s*(--.*)?$'
        ORDER BY l.place
    LOOP
        IF v_line[1] = 'object' THEN
            v_roles := v_line[2:];
            CONTINUE;
        END IF;
        IF cardinality(v_line) IS DISTINCT FROM cardinality(v_roles) + 2 THEN
            RAISE EXCEPTION 'rights of % %: a column for each of % is needed',
                v_line[1], v_line[2], v_roles
                USING ERRCODE = 'LW003';
        END IF;
        FOR v_place IN 1 .. cardinality(v_roles) LOOP
            CONTINUE WHEN v_line[v_place + 2] = '-';
            SELECT string_agg((c_letters ->> m.part[1]) || coalesce(m.part[2], ''), ', ')
            INTO v_rights
            FROM regexp_matches(v_line[v_place + 2], '([a-zA-Z])(\([^)]*\))?', 'g') AS m (part);
            EXECUTE format(
                'GRANT %s ON %s %s%s TO %I', v_rights, upper(v_line[1]),
                CASE WHEN v_line[1] <> 'schema' THEN 'livewell.' END, v_line[2],
                'livewell_' || v_roles[v_place]
            );
        END LOOP;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.grant_rights IS
    'Grants what a matrix of roles and objects says; adds only.';
REVOKE ALL ON FUNCTION livewell.grant_rights FROM PUBLIC;
