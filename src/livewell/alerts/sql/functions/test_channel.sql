-- Ask for a test message through a channel, on the way that every alert goes: a firing of the rule
-- channel_test with one notification, which the next turn of a worker begins, sends and settles.
--
-- Called by: CLI `alerts test`, POST /v1/alerts/channels/{name}/test, the dashboard.
-- Answer:    asked, and a worker is woken; nobody: the same, but no worker was here for a minute;
--            waiting: the last test is not over yet; disabled: enable the channel first; unknown.
-- Lock:      the channel's row, as in begin_attempt(): two who test at once make one message.
-- Index:     alert_firing_subject_idx, notification_pkey.
-- Why SECURITY DEFINER: an operator may ask for the test of a channel, and may write neither firings
-- nor notifications: with those rights anybody could be told anything. Its only input is the name of
-- a channel. Its own types have their full names, because search_path = '' does not keep pg_temp out
-- of the search for types.
CREATE OR REPLACE FUNCTION livewell.test_channel(p_channel pg_catalog.text)
RETURNS pg_catalog.text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now       timestamp with time zone;
    v_channel   livewell.alert_channel;
    v_firing    bigint;
BEGIN
    SELECT * INTO v_channel FROM livewell.alert_channel c WHERE c.name = p_channel FOR UPDATE;
    v_now := livewell.now();
    IF v_channel.name IS NULL THEN
        RETURN 'unknown';
    END IF;
    IF v_channel.disabled_at IS NOT NULL THEN
        RETURN 'disabled';
    END IF;
    SELECT max(f.id) INTO v_firing FROM livewell.alert_firing f
    WHERE f.rule = 'channel_test' AND f.subject = p_channel;
    IF EXISTS (
        SELECT FROM livewell.notification n
        WHERE n.firing_id = v_firing AND n.state IN ('waiting', 'pending')
    ) THEN
        RETURN 'waiting';
    END IF;
    INSERT INTO livewell.alert_firing (fired_at, ended_at, rule, subject, level, summary)
    VALUES (
        v_now, v_now, 'channel_test', p_channel, 'P2',
        format('This is a test of the alert channel %s. Nothing is wrong.', p_channel)
    )
    RETURNING id INTO v_firing;
    INSERT INTO livewell.notification (firing_id, channel, next_at)
    VALUES (v_firing, p_channel, v_now);
    -- An evaluation of the rules and a turn of deliver(), now instead of within a minute.
    RETURN CASE livewell.ask_run('livewell.alerts') WHEN 'asked' THEN 'asked' ELSE 'nobody' END;
END
$$;
COMMENT ON FUNCTION livewell.test_channel IS
    'Makes a test notification of one channel, and wakes whoever sends it.';
REVOKE ALL ON FUNCTION livewell.test_channel FROM PUBLIC;
