-- Forget firings that ended long ago, with all that was sent of them, and alerts that have not
-- fired since, and silences that are over; a bounded page per call.
--
-- Called by: alerts/deliver.py, prune(), until it answers 0.
-- Index:     alert_firing_fired_idx; notifications and attempts go with their firing.
CREATE OR REPLACE FUNCTION livewell.prune_alerts(p_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_before    timestamptz := v_now - make_interval(days => greatest(p_days, 1));
    v_firings   integer;
    v_alerts    integer;
BEGIN
    DELETE FROM livewell.alert_firing f
    WHERE f.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.alert_firing o
            WHERE o.fired_at < v_before AND o.ended_at < v_before
            ORDER BY o.fired_at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_firings = ROW_COUNT;
    DELETE FROM livewell.alert a
    WHERE a.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.alert o
            WHERE o.state = 'armed' AND o.held_at < v_before
            ORDER BY o.id LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_alerts = ROW_COUNT;
    -- Far longer than any notification waits: begin_attempt() asks for silences that are over.
    DELETE FROM livewell.alert_silence s WHERE s.until < least(v_before, v_now - interval '30 days');
    RETURN v_firings + v_alerts;
END
$$;
COMMENT ON FUNCTION livewell.prune_alerts IS
    'Deletes at most p_limit firings and alerts that ended more than p_days ago, and answers how '
    'many.';
REVOKE ALL ON FUNCTION livewell.prune_alerts FROM PUBLIC;
