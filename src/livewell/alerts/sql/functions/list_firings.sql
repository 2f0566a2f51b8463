-- Firings that are over, the newest first: what was wrong, from when to when, and who was told.
-- Keyset, never OFFSET.
--
-- Called by: the dashboard, GET /v1/alerts/firings, CLI `alerts past`. p_before: the last firing of
--            the page before; NULL begins.
-- Index:     alert_firing_pkey backwards: of all firings few are not over; alert_subject_key,
--            notification_pkey.
-- A firing of rule channel_test is no alert, see test_channel().
CREATE OR REPLACE FUNCTION livewell.list_firings(p_before bigint, p_limit integer)
RETURNS TABLE (
    id bigint, alert_id bigint, rule text, subject text, level text, summary text,
    fired_at timestamptz, ended_at timestamptz, waiting bigint, sent bigint, refused bigint,
    unknown bigint, silenced bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_before    bigint := coalesce(p_before, 9223372036854775807);
BEGIN
    RETURN QUERY
    SELECT f.id, a.id, f.rule, f.subject, f.level, f.summary, f.fired_at, f.ended_at, n.waiting,
        n.sent, n.refused, n.unknown, n.silenced
    FROM livewell.alert_firing f
    LEFT JOIN livewell.alert a ON a.rule = f.rule AND a.subject = f.subject
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE o.state IN ('waiting', 'pending')) AS waiting,
            count(*) FILTER (WHERE o.state = 'sent') AS sent,
            count(*) FILTER (WHERE o.state = 'refused' AND o.silenced_at IS NULL) AS refused,
            count(*) FILTER (WHERE o.state = 'unknown') AS unknown,
            count(o.silenced_at) AS silenced
        FROM livewell.notification o
        WHERE o.firing_id = f.id
    ) n
    WHERE f.id < v_before AND f.ended_at IS NOT NULL AND f.rule <> 'channel_test'
    ORDER BY f.id DESC LIMIT least(greatest(p_limit, 1), 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_firings IS
    'A page of firings that are over, with the outcome of their notifications.';
REVOKE ALL ON FUNCTION livewell.list_firings FROM PUBLIC;
