-- Make the channels known that the settings of a sender name, and make one notification of each
-- firing for each of them.
--
-- Called by: alerts/deliver.py, at the beginning of each turn. p_channels: [{name, kind, source,
--            level, repeats}], at most 20.
-- Which firings: those of its level from the hour before it was first named on, so that what fired
-- while a deployment was still starting is told, and last year's is not; and none that is older
-- than a day.
-- Index:     alert_firing_fired_idx, notification_pkey. Bounded by p_limit firings per channel and
--            turn.
-- A channel whose kind or source changes is another one: what its old receiver had asked for
-- (silence, never again) does not hold for the new one.
CREATE OR REPLACE FUNCTION livewell.declare_channels(p_channels jsonb, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_made  integer;
BEGIN
    IF jsonb_array_length(p_channels) > 20 THEN
        RAISE EXCEPTION '% channels; 20 are allowed', jsonb_array_length(p_channels)
            USING ERRCODE = 'LW003';
    END IF;
    INSERT INTO livewell.alert_channel AS c (name, kind, source, level, repeats, since)
    SELECT g.name, g.kind, g.source, g.level, g.repeats, v_now - interval '1 hour'
    FROM jsonb_to_recordset(p_channels) AS g (
        name text, kind text, source text, level text, repeats boolean
    )
    ORDER BY g.name
    ON CONFLICT (name)
    DO UPDATE SET kind = excluded.kind, source = excluded.source, level = excluded.level,
        repeats = excluded.repeats,
        quiet_until = CASE
            WHEN (c.kind, c.source) = (excluded.kind, excluded.source) THEN c.quiet_until
        END,
        disabled_at = CASE
            WHEN (c.kind, c.source) = (excluded.kind, excluded.source) THEN c.disabled_at
        END
    WHERE (c.kind, c.source, c.level, c.repeats) <> (
        excluded.kind, excluded.source, excluded.level, excluded.repeats
    );

    INSERT INTO livewell.notification (firing_id, channel, next_at)
    SELECT f.id, c.name, v_now
    FROM livewell.alert_channel c
    CROSS JOIN LATERAL (
        SELECT o.id FROM livewell.alert_firing o
        WHERE o.fired_at >= greatest(c.since, v_now - interval '1 day')
            AND o.level <= c.level
            AND o.rule <> 'channel_test'        -- its one notification is there, see test_channel()
            AND NOT EXISTS (
                SELECT FROM livewell.notification n WHERE n.firing_id = o.id AND n.channel = c.name
            )
        ORDER BY o.fired_at, o.id LIMIT p_limit
    ) f
    WHERE c.name IN (SELECT g ->> 'name' FROM jsonb_array_elements(p_channels) AS g)
    ORDER BY f.id, c.name
    ON CONFLICT (firing_id, channel) DO NOTHING;
    GET DIAGNOSTICS v_made = ROW_COUNT;
    RETURN v_made;
END
$$;
COMMENT ON FUNCTION livewell.declare_channels IS
    'Declares channels and makes the notifications of new firings; answers how many.';
REVOKE ALL ON FUNCTION livewell.declare_channels FROM PUBLIC;
