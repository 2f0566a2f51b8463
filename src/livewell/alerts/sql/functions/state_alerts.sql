-- What is wrong by the rules, which rules cannot be judged, and whether people can be told.
--
-- Called by: system_state. Exact: a hundred alerts of a rule at most, a few channels. Of what waits
--            for a channel 1,000 are counted, which then means "or more".
-- Index:     notification_next_idx (channel, next_at) WHERE state = 'waiting'
CREATE OR REPLACE FUNCTION livewell.state_alerts()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object(
        'how', 'exact',
        'rules', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', r.name, 'level', r.level, 'fired', a.fired, 'cooling', a.cooling,
                        'failed', r.failed_at IS NOT NULL, 'error', r.error,
                        'evaluated_seconds', extract(epoch FROM v_now - r.evaluated_at)::float8
                    ) ORDER BY r.level,
                    r.name
                ),
                '[]'
            )
            FROM (SELECT * FROM livewell.alert_rule o ORDER BY o.name LIMIT 1000) r
            CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE o.state = 'fired') AS fired,
                    count(*) FILTER (WHERE o.state = 'cooling') AS cooling
                FROM livewell.alert o
                WHERE o.rule = r.name
            ) a
        ),
        'channels', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', c.name, 'kind', c.kind, 'level', c.level, 'source', c.source,
                        'disabled_at', c.disabled_at,
                        'quiet_seconds', CASE
                            WHEN c.quiet_until > v_now
                                THEN extract(epoch FROM c.quiet_until - v_now)::float8
                        END,
                        'waiting', (
                            SELECT count(*)
                            FROM (
                                SELECT FROM livewell.notification n
                                WHERE n.channel = c.name AND n.state = 'waiting'
                                LIMIT 1000
                            ) w
                        )
                    ) ORDER BY c.name
                ),
                '[]'
            )
            FROM (SELECT * FROM livewell.alert_channel o ORDER BY o.name LIMIT 1000) c
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_alerts IS 'Alert rules and channels for the system state.';
REVOKE ALL ON FUNCTION livewell.state_alerts FROM PUBLIC;
