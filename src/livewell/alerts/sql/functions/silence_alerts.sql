-- Tell nobody of a rule's alerts, or of one alert, for so long from now.
--
-- Called by: CLI `alerts silence`, POST /v1/alerts/silences, the dashboard.
-- p_subject: '' for every subject of the rule.
-- Answer:    until when; NULL if there is no such rule.
-- Lock:      every channel, in the order of names, before anything is written. begin_attempt() holds
--            its channel until it has committed, so whatever begins after this call knows of the
--            silence. An attempt that had begun before goes on.
-- A silence that is in force is made longer or shorter; one that is over begins anew.
CREATE OR REPLACE FUNCTION livewell.silence_alerts(
    p_rule text, p_subject text, p_seconds float8, p_by text)
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_seconds_max CONSTANT float8 := 7 * 86400;
    v_now       timestamptz;
    v_until     timestamptz;
    v_subject   text := livewell.redact(p_subject);      -- as observe_alerts() writes it
BEGIN
    IF p_seconds IS NULL OR NOT p_seconds BETWEEN 1 AND c_seconds_max THEN
        RAISE EXCEPTION 'a silence lasts from a second to 7 days, not % seconds', p_seconds
            USING ERRCODE = 'LW003';
    END IF;
    IF NOT EXISTS (SELECT FROM livewell.alert_rule r WHERE r.name = p_rule) THEN
        RETURN NULL;
    END IF;
    PERFORM FROM livewell.alert_channel c ORDER BY c.name FOR UPDATE;
    v_now := livewell.now();
    v_until := v_now + p_seconds * interval '1 second';
    INSERT INTO livewell.alert_silence AS s (rule, subject, since, until, silenced_by)
    VALUES (p_rule, v_subject, v_now, v_until, left(p_by, 500))
    ON CONFLICT (rule, subject)
    DO UPDATE SET
        -- never further back than the check allows
        since = CASE
            WHEN s.until > v_now THEN greatest(s.since, excluded.until - interval '14 days')
            ELSE excluded.since
        END,
        until = excluded.until, silenced_by = excluded.silenced_by;
    RETURN v_until;
END
$$;
COMMENT ON FUNCTION livewell.silence_alerts IS
    'Silences a rule, or one of its subjects, for so many seconds; answers until when.';
REVOKE ALL ON FUNCTION livewell.silence_alerts FROM PUBLIC;
