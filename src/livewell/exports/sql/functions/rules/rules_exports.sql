-- The alert rules of exports. Called by: alert_rules, which finds every rules_<name>().
CREATE OR REPLACE FUNCTION livewell.rules_exports()
RETURNS TABLE (name text, level text, hysteresis interval, meaning text)
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN QUERY VALUES
        ('exports_failing', 'P1', interval '10 minutes',
            'one of five exports fails, and not because of its document'),
        ('exports_memory', 'P2', interval '10 minutes',
            'a worker that renders uses 80 % of the memory that it may use'),
        ('exports_waiting', 'P1', interval '5 minutes', 'an export waits for more than five minutes');
END
$$;
COMMENT ON FUNCTION livewell.rules_exports IS 'The alert rules of exports with their levels.';
REVOKE ALL ON FUNCTION livewell.rules_exports FROM PUBLIC;
