-- Rule beacon_silent (P1): a program has not reported in time. Called by: evaluate_rule.
CREATE OR REPLACE FUNCTION livewell.rule_beacon_silent(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    RETURN QUERY
    SELECT b.name, format('beacon %s was last seen at %s', b.name, b.seen_at)
    FROM livewell.beacon b WHERE p_now > b.seen_at + b.every_seconds * interval '1 second';
END
$$;
COMMENT ON FUNCTION livewell.rule_beacon_silent IS 'Beacons that have not reported in time.';
REVOKE ALL ON FUNCTION livewell.rule_beacon_silent FROM PUBLIC;
