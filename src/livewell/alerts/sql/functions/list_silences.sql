-- Silences that are in force: of what nobody is told, until when, by whom.
--
-- Called by: CLI `alerts silences`, GET /v1/alerts/silences, the dashboard.
-- Index:     alert_silence_pkey, all of it: people make the rows, and prune_alerts() takes old ones
--            away. 1,000 are listed at most, those that end first.
CREATE OR REPLACE FUNCTION livewell.list_silences()
RETURNS TABLE (
    rule text, subject text, since timestamptz, until timestamptz, silenced_by text, alerts bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT s.rule, s.subject, s.since, s.until, s.silenced_by, (
        SELECT count(*) FROM livewell.alert a
        WHERE a.rule = s.rule AND s.subject IN ('', a.subject) AND a.state <> 'armed'
    )
    FROM livewell.alert_silence s
    WHERE s.until > v_now
    ORDER BY s.until, s.rule, s.subject LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_silences IS
    'Silences in force, and how many alerts that are wrong now each of them covers.';
REVOKE ALL ON FUNCTION livewell.list_silences FROM PUBLIC;
