-- Put a type into the registry, or bring it up to date: the row, its table and its queue in one
-- transaction (R1, contract 22).
--
-- Called by: `livewell types apply`, as the owner; nobody else may. p_row has the columns of
--            livewell.data_type.
-- Answer:    refused, with the SQL a person would have to run and nothing done, when the table
--            would need more than additions; otherwise created, changed or unchanged, with the SQL
--            that was run.
-- Steps:     compare_table, run what it adds, declare_queue, insert_type or update_type.
-- Nobody is kept waiting: a lock that is not there within 100 ms fails the call, and the caller
-- tries again (contract 16). The version grows only if something has changed.
CREATE OR REPLACE FUNCTION livewell.apply_type(p_row jsonb)
RETURNS TABLE (outcome text, version bigint, reasons text[], statements text[])
LANGUAGE plpgsql
SET search_path = ''
SET lock_timeout = '100ms'
AS $$
DECLARE
    v_wanted    livewell.data_type := jsonb_populate_record(NULL::livewell.data_type, p_row);
    v_is        livewell.data_type;
    v_now       timestamptz;
    v_role      text := current_setting('role');
    v_reasons   text[];
    v_run       text[];
    v_refused   text[];
    v_statement text;
BEGIN
    -- Whoever may, acts as the owner, so that the owner owns what is made; at the end he is himself
    -- again.
    PERFORM set_config(
        'role',
        (
            SELECT r.rolname FROM pg_catalog.pg_namespace n
            JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
            WHERE n.nspname = 'livewell_data'),
        true);
    <<work>>
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended('livewell.registry', 0));
        SELECT * INTO v_is FROM livewell.data_type t WHERE t.name = v_wanted.name FOR UPDATE;
        v_now := livewell.now();
        IF NOT EXISTS (SELECT FROM livewell.upstream u WHERE u.name = v_wanted.upstream) THEN
            RAISE EXCEPTION 'upstream "%" is not in the registry; apply its file first',
                v_wanted.upstream
            USING ERRCODE = 'LW022';
        END IF;
        SELECT array_agg(c.what), coalesce(array_agg(c.statement) FILTER (WHERE c.additive), '{}'),
               coalesce(array_agg(c.statement) FILTER (WHERE NOT c.additive), '{}')
        INTO v_reasons, v_run, v_refused
        FROM livewell.compare_table(v_wanted.name, v_wanted.columns) AS c;
        IF v_is.upstream <> v_wanted.upstream THEN
            v_reasons := v_reasons || format(
                'its upstream is "%s" in the registry and "%s" in the file',
                v_is.upstream, v_wanted.upstream);
            v_refused := v_refused || format(
                'UPDATE livewell.data_type SET upstream = %1$L WHERE name = %2$L;'
                ' UPDATE livewell.ledger SET upstream = %1$L WHERE data_type = %2$L;',
                v_wanted.upstream, v_wanted.name);
        END IF;
        IF cardinality(v_refused) > 0 THEN
            RETURN QUERY SELECT 'refused', v_is.version, v_reasons, v_run || v_refused;
            EXIT work;
        END IF;
        FOREACH v_statement IN ARRAY v_run LOOP
            EXECUTE v_statement;
        END LOOP;
        PERFORM livewell.declare_queue(
            livewell.refresh_queue(v_wanted.upstream, v_wanted.pool), 4, 5, 300, 5,
            jsonb_build_object('limiter', v_wanted.upstream));
        IF v_is.name IS NULL THEN
            PERFORM livewell.insert_type(v_wanted, v_now);
            RETURN QUERY SELECT 'created', 1::bigint, v_reasons, v_run;
            EXIT work;
        END IF;
        -- A parked type is changed by applying the same file again: that is how a person says that
        -- the plan includes it by now.
        IF cardinality(v_run) = 0 AND v_is.parked_reason IS NULL AND (
                v_is.ttl, v_is.negative_ttl, v_is.strategy, v_is.cron, v_is.zone, v_is.rule,
                v_is.calendar, v_is.max_source_age, v_is.has_source_time, v_is.rows_kind,
                v_is.pool, v_is.keys_max, v_is.key_pattern, v_is.prefetch, v_is.definition,
                v_is.columns)
            IS NOT DISTINCT FROM (
                v_wanted.ttl, v_wanted.negative_ttl, v_wanted.strategy, v_wanted.cron,
                v_wanted.zone, v_wanted.rule, v_wanted.calendar, v_wanted.max_source_age,
                v_wanted.has_source_time, v_wanted.rows_kind, v_wanted.pool, v_wanted.keys_max,
                v_wanted.key_pattern, v_wanted.prefetch, v_wanted.definition, v_wanted.columns)
        THEN
            RETURN QUERY SELECT 'unchanged', v_is.version, v_reasons, v_run;
            EXIT work;
        END IF;
        PERFORM livewell.update_type(v_is, v_wanted, v_now);
        RETURN QUERY SELECT 'changed', v_is.version + 1, v_reasons, v_run;
    END work;
    PERFORM set_config('role', v_role, true);
END
$$;
COMMENT ON FUNCTION livewell.apply_type IS
    'Puts a type into the registry with its table and queue, or answers with the SQL a person '
    'would have to run.';
REVOKE ALL ON FUNCTION livewell.apply_type FROM PUBLIC;
