-- The whole system in one query (S6): what each package says of itself, by name.
--
-- Called by: `livewell state`, GET /v1/system/state, GET /v1/metrics, `livewell doctor`,
--            record_minute.
-- Every function livewell.state_<part>() without arguments that gives jsonb is asked, if the caller
-- may; a part that fails says so in its place, and the others are there all the same. Each part
-- says "how" its figures came about: exact, or estimated from a sample whose age it gives.
-- Cost:      1,000,000 live jobs, 10,000,000 rows of history and 300,000 subscriptions: 38 ms when
--            samples are taken, 5 ms while they are kept (bench/operations/state.py).
CREATE OR REPLACE FUNCTION livewell.system_state()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
-- of the login behind a transaction pooler it may be on: 0.9 to 2.5 s instead of 40 ms
SET jit = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_parts     jsonb := '{}';
    v_part      record;
    v_value     jsonb;
BEGIN
    FOR v_part IN
        SELECT p.proname, substr(p.proname, 7) AS name FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'livewell'::regnamespace
            AND p.proname LIKE 'state\_%'
            AND p.pronargs = 0
            AND p.prorettype = 'pg_catalog.jsonb'::regtype
            AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
        ORDER BY p.proname LIMIT 100
    LOOP
        <<asked>>
        BEGIN
            EXECUTE format('SELECT livewell.%I()', v_part.proname) INTO v_value;
        EXCEPTION WHEN OTHERS THEN
            v_value := jsonb_build_object('how', 'failed', 'error', SQLERRM, 'sqlstate', SQLSTATE);
        END asked;
        v_parts := v_parts || jsonb_build_object(v_part.name, v_value);
    END LOOP;
    RETURN jsonb_build_object('at', v_now) || v_parts;
END
$$;
COMMENT ON FUNCTION livewell.system_state IS
    'The state of every part of the system in one document.';
REVOKE ALL ON FUNCTION livewell.system_state FROM PUBLIC;
