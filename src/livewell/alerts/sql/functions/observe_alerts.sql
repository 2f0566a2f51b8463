-- Tell the alerts of one rule what is so now: for these subjects its condition holds, for all
-- others it does not.
--
--     armed ──holds──▶ fired ──holds no more──▶ cooling ──for the rule's hysteresis──▶ armed
--                        ▲──────holds again─────────┘ the same firing: nobody is told again
--
-- Called by: evaluate_rule (operations), and whoever else has a condition that people should be
--            told of. A firing is one row; deliver() makes one notification of it per channel.
-- Index:     alert_subject_key.
-- Two evaluators at once: the rule's row is locked first and the alerts are read in later
-- statements, so the second sees what the first has fired.
CREATE OR REPLACE FUNCTION livewell.observe_alerts(
    p_rule text, p_level text, p_hysteresis interval, p_subjects text[], p_summaries text[]
)
RETURNS TABLE (fired integer, cooled integer, rearmed integer)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_now   timestamptz;
BEGIN
    IF cardinality(p_subjects) > 1000 OR cardinality(p_subjects) <> cardinality(p_summaries) THEN
        RAISE EXCEPTION 'rule %: % subjects and % summaries; as many of each, and at most 1000',
            p_rule, cardinality(p_subjects), cardinality(p_summaries)
            USING ERRCODE = 'LW003';
    END IF;
    -- Names come from outside, and are told to channels (L10): redacted before anything is
    -- compared, so that an alert is one whatever its secret part.
    p_subjects := ARRAY(
        SELECT livewell.redact(g.subject)
        FROM unnest(p_subjects) WITH ORDINALITY AS g (subject, place)
        ORDER BY g.place
    );
    INSERT INTO livewell.alert_rule (name, level, hysteresis)
    VALUES (p_rule, p_level, p_hysteresis)
    ON CONFLICT (name) DO NOTHING;
    PERFORM FROM livewell.alert_rule r WHERE r.name = p_rule FOR UPDATE;
    v_now := livewell.now();
    UPDATE livewell.alert_rule r
    SET level = p_level, hysteresis = p_hysteresis, evaluated_at = v_now
    WHERE r.name = p_rule;

    -- Gone for long enough: it may fire again, with the next evaluation at the earliest.
    WITH armed AS (
        UPDATE livewell.alert a
        SET state = 'armed', clear_since = NULL
        WHERE a.rule = p_rule
            AND a.state = 'cooling'
            AND a.clear_since <= v_now - p_hysteresis
            AND a.subject <> ALL (p_subjects)
        RETURNING a.firing_id
    ),
    ended AS (
        UPDATE livewell.alert_firing f SET ended_at = v_now FROM armed WHERE f.id = armed.firing_id
    )
    SELECT count(*) INTO rearmed FROM armed;

    UPDATE livewell.alert a SET state = 'cooling', clear_since = v_now
    WHERE a.rule = p_rule AND a.state = 'fired' AND a.subject <> ALL (p_subjects);
    GET DIAGNOSTICS cooled = ROW_COUNT;

    -- It holds, still or again.
    UPDATE livewell.alert a
    SET state = 'fired', clear_since = NULL, held_at = v_now, level = p_level,
        summary = left(livewell.redact(g.summary), 500)
    FROM unnest(p_subjects, p_summaries) AS g (subject, summary)
    WHERE a.rule = p_rule AND a.subject = g.subject AND a.state <> 'armed';

    -- New, or armed: it fires.
    WITH given AS (
        SELECT DISTINCT ON (g.subject) g.subject, left(livewell.redact(g.summary), 500) AS summary
        FROM unnest(p_subjects, p_summaries) AS g (subject, summary)
        ORDER BY g.subject, g.summary
    ),
    firing AS (
        INSERT INTO livewell.alert_firing (fired_at, rule, subject, level, summary)
        SELECT v_now, p_rule, g.subject, p_level, g.summary FROM given g
        WHERE NOT EXISTS (
            SELECT FROM livewell.alert a
            WHERE a.rule = p_rule AND a.subject = g.subject AND a.state <> 'armed'
        )
        ORDER BY g.subject
        RETURNING alert_firing.id, alert_firing.subject, alert_firing.summary
    ),
    alert AS (
        INSERT INTO livewell.alert AS a (
            rule, subject, state, level, summary, firings, firing_id, fired_at, held_at
        )
        SELECT p_rule, f.subject, 'fired', p_level, f.summary, 1, f.id, v_now, v_now FROM firing f
        ON CONFLICT (rule, subject)
        DO UPDATE SET state = 'fired', level = excluded.level, summary = excluded.summary,
            firings = a.firings + 1, firing_id = excluded.firing_id, fired_at = v_now,
            held_at = v_now
    )
    SELECT count(*) INTO fired FROM firing;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.observe_alerts IS
    'Moves the alerts of a rule: fires, cools and arms them by the subjects for which its '
    'condition holds now.';
REVOKE ALL ON FUNCTION livewell.observe_alerts FROM PUBLIC;
