-- Until when nobody is told of this alert; NULL if people are told.
--
-- Called by: list_alerts and list_attempts, once for each alert that is shown.
-- Index:     alert_silence_pkey.
CREATE OR REPLACE FUNCTION livewell.silenced_until(
    p_rule text, p_subject text, p_now timestamptz)
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT max(s.until) FROM livewell.alert_silence s
    WHERE s.rule = p_rule AND s.subject IN ('', p_subject) AND s.until > p_now
$$;
COMMENT ON FUNCTION livewell.silenced_until IS 'The end of the silence that covers an alert.';
REVOKE ALL ON FUNCTION livewell.silenced_until FROM PUBLIC;
