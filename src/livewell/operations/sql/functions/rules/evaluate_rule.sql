-- Ask one rule what is wrong now, and tell its alerts.
--
-- Called by: operations/rules.py, once a minute and rule, each in a transaction of its own: a rule
--            that fails or takes too long costs the others nothing.
-- Lock:      the rule's row, before its condition is read: two evaluators take turns, and a
--            condition that needs a history (lasting) is counted once.
-- A rule whose query fails is a warning; its alerts stay as they are, for nothing is known. Beyond
-- 100 subjects the rest is counted, not told: a hundred messages say enough.
CREATE OR REPLACE FUNCTION livewell.evaluate_rule(p_rule text)
RETURNS TABLE (answer text, fired integer, cooled integer, rearmed integer)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    c_subjects_max CONSTANT integer := 100;
    v_now       timestamptz;
    v_rule      record;
    v_subjects  text[];
    v_summaries text[];
    v_failure   text;
BEGIN
    SELECT r.name, r.level, r.hysteresis INTO v_rule FROM livewell.alert_rules() r
    WHERE r.name = p_rule;
    IF v_rule.name IS NULL THEN
        RAISE EXCEPTION 'rule %: there is none of that name', p_rule USING ERRCODE = 'LW003';
    END IF;
    INSERT INTO livewell.alert_rule (name, level, hysteresis)
    VALUES (v_rule.name, v_rule.level, v_rule.hysteresis)
    ON CONFLICT (name) DO NOTHING;
    PERFORM FROM livewell.alert_rule r WHERE r.name = p_rule FOR UPDATE;
    v_now := livewell.now();
    <<alone>>
    BEGIN
        EXECUTE format(
            'SELECT array_agg(o.subject), array_agg(o.summary) '
            'FROM (SELECT r.subject, r.summary FROM livewell.%I($1) r '
            'ORDER BY r.subject LIMIT $2) o',
            'rule_' || p_rule
        )
        INTO v_subjects, v_summaries
        USING v_now, c_subjects_max + 1;
    EXCEPTION WHEN OTHERS THEN
        v_failure := SQLSTATE || ': ' || SQLERRM;
    END alone;
    IF v_failure IS NOT NULL THEN
        UPDATE livewell.alert_rule r
        SET failed_at = v_now, error = left(livewell.redact(v_failure), 500)
        WHERE r.name = p_rule;
        PERFORM livewell.warn(
            'alerts.rules', p_rule || ': the rule could not be evaluated', v_failure
        );
        RETURN QUERY SELECT 'failed', 0, 0, 0;
        RETURN;
    END IF;
    IF cardinality(v_subjects) > c_subjects_max THEN
        PERFORM livewell.warn(
            'alerts.rules', p_rule || ': more than 100 alerts at once; the rest is not told',
            v_subjects[c_subjects_max + 1]
        );
    END IF;
    UPDATE livewell.alert_rule r
    SET failed_at = NULL, error = NULL
    WHERE r.name = p_rule AND r.failed_at IS NOT NULL;
    RETURN QUERY
    SELECT 'evaluated', o.fired, o.cooled, o.rearmed
    FROM livewell.observe_alerts(
        p_rule, v_rule.level, v_rule.hysteresis, coalesce(v_subjects[:c_subjects_max], '{}'),
        coalesce(v_summaries[:c_subjects_max], '{}')
    ) o;
END
$$;
COMMENT ON FUNCTION livewell.evaluate_rule IS
    'Evaluates one alert rule and moves its alerts; a rule that fails is a warning.';
REVOKE ALL ON FUNCTION livewell.evaluate_rule FROM PUBLIC;
