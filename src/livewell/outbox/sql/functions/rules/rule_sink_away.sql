-- Rule sink_away (P1): relays live, and none of them has reached the sink for 5 minutes.
--
-- Called by: evaluate_rule. Index: relay_sink_idx. A table of a few rows.
-- A paused sink may be away: nothing would be sent. Without any relay it is another matter:
-- outbox_late, as soon as events wait.
CREATE OR REPLACE FUNCTION livewell.rule_sink_away(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.name::text,
        format(
            'sink %s: it has not been reached for %s min: %s', s.name,
            floor(extract(epoch FROM p_now - r.away_since) / 60), left(r.away_reason, 200)
        )
    FROM (SELECT o.* FROM livewell.event_sink o ORDER BY o.id LIMIT 1000) s
    CROSS JOIN LATERAL livewell.describe_sink_relays(s.id, p_now) r
    WHERE s.paused_at IS NULL AND r.away_since <= p_now - interval '5 minutes';
END
$$;
COMMENT ON FUNCTION livewell.rule_sink_away IS
    'Sinks that no relay has reached for 5 minutes.';
REVOKE ALL ON FUNCTION livewell.rule_sink_away FROM PUBLIC;
