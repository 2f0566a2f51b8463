-- Alerts by number, each with what became of telling people of its latest firing.
--
-- Called by: list_urgent_alerts; CLI `alerts list`, GET /v1/alerts, the page of one alert.
-- p_state: armed, fired, cooling; NULL: all but the armed ones, which is what is wrong now. 'all':
--          every one.
CREATE OR REPLACE FUNCTION livewell.list_alerts(p_state text, p_after bigint, p_limit integer)
RETURNS TABLE (
    id bigint, rule text, subject text, level text, state text, summary text, fired_at timestamptz,
    held_at timestamptz, clear_since timestamptz, firings bigint, waiting bigint, sent bigint,
    refused bigint, unknown bigint, silenced bigint, silenced_until timestamptz
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
    SELECT a.id, a.rule, a.subject, a.level, a.state::text, a.summary, a.fired_at, a.held_at,
        a.clear_since, a.firings, n.waiting, n.sent, n.refused, n.unknown, n.silenced,
        livewell.silenced_until(a.rule, a.subject, v_now)
    FROM livewell.alert a
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE o.state IN ('waiting', 'pending')) AS waiting,
            count(*) FILTER (WHERE o.state = 'sent') AS sent,
            count(*) FILTER (WHERE o.state = 'refused' AND o.silenced_at IS NULL) AS refused,
            count(*) FILTER (WHERE o.state = 'unknown') AS unknown,
            count(o.silenced_at) AS silenced
        FROM livewell.notification o
        WHERE o.firing_id = a.firing_id
    ) n
    WHERE a.id > p_after
        AND (p_state = 'all' OR p_state IS NULL AND a.state <> 'armed' OR a.state::text = p_state)
    ORDER BY a.id LIMIT least(p_limit, 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_alerts IS
    'A page of alerts with the outcome of their latest notifications.';
REVOKE ALL ON FUNCTION livewell.list_alerts FROM PUBLIC;
