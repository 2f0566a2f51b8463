-- Every alert rule there is: those of each function livewell.rules_<capability>(), in its columns.
--
-- Called by: evaluate_rule, alerts/rules.py, CLI.
-- A function without arguments whose name begins so is asked, if the caller may. It lists rules of
-- its own; the condition of each is the function rule_<name>(now): columns subject and summary.
-- A list that fails stands for one rule of its capability's name. That one cannot be evaluated,
-- which is counted and told like any rule that fails; the rules of the others go on.
CREATE OR REPLACE FUNCTION livewell.alert_rules()
RETURNS TABLE (name text, level text, hysteresis interval, meaning text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET lock_timeout = '100ms'    -- it runs functions that it does not know
AS $$
DECLARE
    v_list  text;
BEGIN
    FOR v_list IN
        SELECT p.proname FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'livewell'::regnamespace AND p.proname LIKE 'rules\_%'
          AND p.pronargs = 0 AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
        ORDER BY p.proname LIMIT 100
    LOOP
        <<asked>>
        BEGIN
            RETURN QUERY EXECUTE format(
                'SELECT r.name, r.level, r.hysteresis, r.meaning FROM livewell.%I() r', v_list);
        EXCEPTION WHEN OTHERS THEN
            RETURN QUERY SELECT
                substr(v_list, 7), 'P2'::text, interval '1 hour',
                'its rules could not be listed: ' || SQLERRM;
        END asked;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.alert_rules IS 'The alert rules of all capabilities with their levels.';
REVOKE ALL ON FUNCTION livewell.alert_rules FROM PUBLIC;
