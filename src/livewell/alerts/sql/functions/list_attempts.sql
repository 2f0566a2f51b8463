-- Of one alert: its latest firings, and for each channel what was tried.
--
-- Called by: CLI `alerts show`, GET /v1/alerts/{id}, the dashboard. One row per attempt, or one without where nothing has been tried;
--            newest firing first, 20 firings at most.
-- Index:     alert_firing_subject_idx, notification_pkey, notification_attempt_of_idx.
CREATE OR REPLACE FUNCTION livewell.list_attempts(p_alert bigint)
RETURNS TABLE (
    firing_id bigint, fired_at timestamptz, ended_at timestamptz, summary text, channel text,
    state text, attempts integer, next_at timestamptz, attempt_at timestamptz, outcome text,
    status integer, detail text
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
    SELECT f.id, f.fired_at, f.ended_at, f.summary, n.channel,
        CASE WHEN n.silenced_at IS NULL THEN n.state::text ELSE 'silenced' END,
        n.attempts::integer,
        CASE
            WHEN n.state = 'waiting'
                THEN greatest(n.next_at, livewell.silenced_until(a.rule, a.subject, v_now))
        END,
        t.started_at, t.outcome::text,
        t.status::integer, t.detail
    FROM livewell.alert a
    CROSS JOIN LATERAL (
        SELECT * FROM livewell.alert_firing o
        WHERE o.rule = a.rule AND o.subject = a.subject
        ORDER BY o.id DESC LIMIT 20
    ) f
    LEFT JOIN livewell.notification n ON n.firing_id = f.id
    LEFT JOIN livewell.notification_attempt t ON t.firing_id = n.firing_id AND t.channel = n.channel
    WHERE a.id = p_alert
    ORDER BY f.id DESC, n.channel, t.id LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_attempts IS
    'The firings of an alert, and every attempt to tell somebody of them.';
REVOKE ALL ON FUNCTION livewell.list_attempts FROM PUBLIC;
