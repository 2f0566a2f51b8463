-- Every channel that was ever declared, what waits for it, and how its last message and its last
-- test ended.
--
-- Called by: CLI `alerts channels`, GET /v1/alerts/channels, the dashboard. Exact: a few channels. Of
--            what waits 1,000 are counted, which then means "or more".
-- Index:     notification_next_idx, alert_firing_subject_idx, notification_attempt_of_idx.
CREATE OR REPLACE FUNCTION livewell.list_channels()
RETURNS TABLE (
    name text, kind text, source text, level text, repeats boolean, since timestamptz,
    quiet_until timestamptz, disabled_at timestamptz, waiting bigint, tested_at timestamptz,
    test_state text, test_status integer, test_detail text
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
    SELECT c.name, c.kind, c.source, c.level, c.repeats, c.since,
        CASE WHEN c.quiet_until > v_now THEN c.quiet_until END, c.disabled_at, (
            SELECT count(*)
            FROM (
                SELECT FROM livewell.notification n
                WHERE n.channel = c.name AND n.state = 'waiting'
                LIMIT 1000
            ) w
        ),
        t.fired_at, t.state::text, t.status::integer, t.detail
    FROM livewell.alert_channel c
    LEFT JOIN LATERAL (
        SELECT f.fired_at, n.state, a.status, a.detail
        FROM livewell.alert_firing f
        JOIN livewell.notification n ON n.firing_id = f.id AND n.channel = c.name
        LEFT JOIN livewell.notification_attempt a ON a.firing_id = f.id AND a.channel = c.name
        WHERE f.rule = 'channel_test' AND f.subject = c.name
        ORDER BY f.id DESC, a.id DESC LIMIT 1
    ) t ON true
    ORDER BY c.name LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_channels IS
    'Alert channels with what waits for them and the outcome of their last test.';
REVOKE ALL ON FUNCTION livewell.list_channels FROM PUBLIC;
