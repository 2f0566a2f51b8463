-- Record how an attempt ended, and decide what becomes of its notification.
--
-- Called by: alerts/deliver.py after sending; expire_attempts for those of whom nothing was heard.
-- p_outcome:       sent, refused (certainly not delivered) or unknown.
-- p_again:         a refusal that may pass: tried again later, up to 8 attempts.
-- p_quiet_seconds: the receiver asked for silence on this channel. A refusal with it (429) costs no
-- attempt: the receiver is well, and the day bounds it.
-- p_gone:          the receiver wants nothing more, ever (410): the channel is disabled.
-- "Sent" is never taken back, and a late "sent" is believed: whoever was frozen, and given up,
-- knows best what the receiver said. Otherwise only a pending attempt can be settled, once.
-- Lock: the channel's row first, as in begin_attempt.
CREATE OR REPLACE FUNCTION livewell.settle_attempt(
    p_attempt bigint,
    p_outcome text,
    p_status integer,
    p_detail text,
    p_again boolean DEFAULT false,
    p_quiet_seconds float8 DEFAULT NULL,
    p_gone boolean DEFAULT false
)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_attempts_max CONSTANT integer := 8;
    v_now       timestamptz;
    v_attempt   livewell.notification_attempt;
    v_channel   livewell.alert_channel;
    v_n         livewell.notification;
    v_state     livewell.notification_state;
BEGIN
    IF p_outcome NOT IN ('sent', 'refused', 'unknown') THEN
        RAISE EXCEPTION 'outcome %: allowed are sent, refused and unknown', p_outcome
            USING ERRCODE = 'LW003';
    END IF;
    SELECT * INTO v_attempt FROM livewell.notification_attempt a WHERE a.id = p_attempt;
    SELECT * INTO v_channel FROM livewell.alert_channel c
    WHERE c.name = v_attempt.channel
    FOR UPDATE;
    SELECT * INTO v_attempt FROM livewell.notification_attempt a WHERE a.id = p_attempt FOR UPDATE;
    SELECT * INTO v_n FROM livewell.notification n
    WHERE n.firing_id = v_attempt.firing_id AND n.channel = v_attempt.channel
    FOR UPDATE;
    v_now := livewell.now();
    IF v_n.firing_id IS NULL THEN
        RETURN 'gone';
    END IF;
    IF p_quiet_seconds > 0 THEN
        UPDATE livewell.alert_channel c
        SET quiet_until = greatest(
            c.quiet_until, v_now + least(p_quiet_seconds, 86400) * interval '1 second'
        )
        WHERE c.name = v_channel.name;
    END IF;
    IF v_attempt.outcome <> 'pending' AND p_outcome <> 'sent' THEN
        RETURN v_n.state;
    END IF;
    UPDATE livewell.notification_attempt a
    SET outcome = p_outcome::livewell.attempt_outcome, status = p_status,
        detail = left(livewell.redact(p_detail), 300), ended_at = v_now
    WHERE a.id = p_attempt;
    IF p_gone AND v_channel.disabled_at IS NULL THEN
        UPDATE livewell.alert_channel c SET disabled_at = v_now WHERE c.name = v_channel.name;
        PERFORM livewell.warn(
            'alerts', 'a receiver is gone and its channel was disabled', v_channel.name
        );
    END IF;
    IF v_n.state = 'sent' THEN
        RETURN v_n.state;
    END IF;

    v_state := CASE
        WHEN p_outcome = 'sent' THEN 'sent'
        WHEN p_outcome = 'refused' AND p_quiet_seconds > 0 AND p_again THEN 'waiting'
        WHEN v_n.attempts >= c_attempts_max THEN p_outcome
        WHEN p_outcome = 'refused' THEN CASE WHEN p_again THEN 'waiting' ELSE 'refused' END
        WHEN v_channel.repeats THEN 'waiting'
        ELSE 'unknown' END;
    UPDATE livewell.notification n
    SET state = v_state, settled_at = CASE WHEN v_state <> 'waiting' THEN v_now END,
        attempts = n.attempts
            - CASE WHEN v_state = 'waiting' AND p_quiet_seconds > 0 THEN 1 ELSE 0 END,
        -- 10 s, doubling up to 10 min: eight attempts in about half an hour.
        next_at = CASE
            WHEN v_state = 'waiting'
                THEN v_now + coalesce(
                    nullif(p_quiet_seconds, 0), least(600, 10 * 2 ^ (n.attempts - 1))
                ) * interval '1 second'
            ELSE n.next_at
        END
    WHERE n.firing_id = v_n.firing_id AND n.channel = v_n.channel;
    IF v_state = 'refused' THEN
        PERFORM livewell.warn(
            'alerts', 'a notification was refused', concat(v_channel.name, ': ', p_detail)
        );
    ELSIF p_outcome = 'unknown' THEN
        PERFORM livewell.warn(
            'alerts', 'it is not known whether a notification arrived',
            concat(v_channel.name, ': ', p_detail)
        );
    END IF;
    RETURN v_state;
END
$$;
COMMENT ON FUNCTION livewell.settle_attempt IS
    'Records how an attempt ended and answers the state of its notification.';
REVOKE ALL ON FUNCTION livewell.settle_attempt FROM PUBLIC;
