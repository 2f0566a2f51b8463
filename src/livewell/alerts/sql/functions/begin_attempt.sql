-- Take the next notification of a channel and record that we are about to send it. The caller
-- commits, and only then sends.
--
--     waiting ──begin──▶ pending ──sent──▶ sent
--        ▲                  ├──refused for now──▶ waiting, later
--        │                  ├──refused for good, too often or too long──▶ refused
--        │                  └──unknown──▶ unknown
--        └──── if the receiver drops repetitions ┘
--
-- Called by: alerts/deliver.py, again and again until it answers nothing.
-- Index:     notification_next_idx.
-- Lock:      the channel's row, first: senders take turns, and whoever comes after an answer "be
--            quiet" has read it.
-- The most urgent first, then the oldest. What is older than a day helps nobody any more and is
-- refused.
-- Silences:  what one covers waits for its end. Then people are told of what still fires; while it
--            cools it waits to see whether it comes back, and what is over is told to nobody.
CREATE OR REPLACE FUNCTION livewell.begin_attempt(p_channel text, p_lease_seconds float8)
RETURNS TABLE (
    attempt_id bigint, message_id uuid, attempt integer, rule text, subject text, level text,
    summary text, fired_at timestamptz, started_at timestamptz
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_channel   livewell.alert_channel;
    v_firing    bigint;
BEGIN
    SELECT * INTO v_channel FROM livewell.alert_channel c WHERE c.name = p_channel FOR UPDATE;
    v_now := livewell.now();
    IF v_channel.name IS NULL OR v_channel.disabled_at IS NOT NULL OR v_channel.quiet_until > v_now
    THEN
        RETURN;
    END IF;
    UPDATE livewell.notification n
    SET state = 'refused', silenced_at = v_now, settled_at = v_now
    FROM livewell.alert_firing f
    WHERE n.channel = p_channel
        AND n.state = 'waiting'
        AND f.id = n.firing_id
        AND f.ended_at IS NOT NULL
        AND EXISTS (
            SELECT FROM livewell.alert_silence s
            WHERE s.rule = f.rule
                AND s.subject IN ('', f.subject)
                AND s.since <= f.ended_at
                AND (f.ended_at < s.until OR f.fired_at < s.until AND n.attempts = 0)
        );
    WITH late AS (
        UPDATE livewell.notification n
        SET state = 'refused', settled_at = v_now
        FROM livewell.alert_firing f
        WHERE n.channel = p_channel
            AND n.state = 'waiting'
            AND f.id = n.firing_id
            AND f.fired_at < v_now - interval '1 day'
            -- a silence gives it another day
            AND NOT EXISTS (
                SELECT FROM livewell.alert_silence s
                WHERE s.rule = f.rule
                    AND s.subject IN ('', f.subject)
                    AND s.until > v_now - interval '1 day'
                    AND s.until > f.fired_at
            )
        RETURNING n.firing_id
    )
    SELECT count(*) INTO v_firing FROM late;
    IF v_firing > 0 THEN
        PERFORM livewell.warn(
            'alerts', 'a notification could not be delivered within a day', p_channel
        );
    END IF;
    SELECT n.firing_id INTO v_firing
    FROM livewell.notification n JOIN livewell.alert_firing f ON f.id = n.firing_id
    WHERE n.channel = p_channel AND n.state = 'waiting' AND n.next_at <= v_now
        AND NOT EXISTS (
            SELECT FROM livewell.alert_silence s
            LEFT JOIN livewell.alert a ON a.firing_id = f.id AND a.rule = f.rule
                AND a.subject = f.subject
            WHERE s.rule = f.rule
                AND s.subject IN ('', f.subject)
                AND (s.until > v_now
                    OR f.fired_at < s.until AND n.attempts = 0 AND a.state = 'cooling')
        )
    ORDER BY f.level, n.firing_id LIMIT 1
    FOR UPDATE OF n SKIP LOCKED;
    IF v_firing IS NULL THEN
        RETURN;
    END IF;
    UPDATE livewell.notification n
    SET state = 'pending', attempts = n.attempts + 1
    WHERE n.firing_id = v_firing AND n.channel = p_channel;
    RETURN QUERY
    WITH begun AS (
        INSERT INTO livewell.notification_attempt (firing_id, channel, started_at, lease_until)
        VALUES (v_firing, p_channel, v_now, v_now + p_lease_seconds * interval '1 second')
        RETURNING id
    )
    SELECT b.id, n.message_id, n.attempts::integer, f.rule, f.subject, f.level, f.summary,
        f.fired_at, v_now
    FROM begun b
    CROSS JOIN livewell.notification n
    JOIN livewell.alert_firing f ON f.id = n.firing_id
    WHERE n.firing_id = v_firing AND n.channel = p_channel;
END
$$;
COMMENT ON FUNCTION livewell.begin_attempt IS
    'Records an attempt to send the next notification of a channel, and answers what to send.';
REVOKE ALL ON FUNCTION livewell.begin_attempt FROM PUBLIC;
