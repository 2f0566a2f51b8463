-- The alert rules of beacons. Called by: alert_rules, which finds every rules_<name>().
CREATE OR REPLACE FUNCTION livewell.rules_beacons()
RETURNS TABLE (name text, level text, hysteresis interval, meaning text)
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN QUERY VALUES
        ('beacon_silent', 'P1', interval '5 minutes', 'a program has not reported in time');
END
$$;
COMMENT ON FUNCTION livewell.rules_beacons IS 'The alert rules of beacons with their levels.';
REVOKE ALL ON FUNCTION livewell.rules_beacons FROM PUBLIC;
