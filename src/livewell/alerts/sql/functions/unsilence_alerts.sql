-- End a silence now: whatever still fires and was not told is told with the next turn.
--
-- Called by: CLI `alerts unsilence`, DELETE /v1/alerts/silences, the dashboard.
-- Answer:    false if no such silence is in force.
-- The row stays, see begin_attempt().
CREATE OR REPLACE FUNCTION livewell.unsilence_alerts(p_rule text, p_subject text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_subject   text := livewell.redact(p_subject);
BEGIN
    PERFORM FROM livewell.alert_silence s
    WHERE s.rule = p_rule AND s.subject = v_subject
    FOR NO KEY UPDATE;
    v_now := livewell.now();
    UPDATE livewell.alert_silence s SET until = v_now
    WHERE s.rule = p_rule AND s.subject = v_subject AND s.until > v_now;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.unsilence_alerts IS
    'Ends a silence; false when there was none in force.';
REVOKE ALL ON FUNCTION livewell.unsilence_alerts FROM PUBLIC;
