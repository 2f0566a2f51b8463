-- Show a scheduled type in the list of schedules, as walk.<type>: when it walks next, and by which rule.
--
-- Called by: refresh/due/check.py, for what list_walks() answers as not shown. p_gap: between its next slot and the one after it; a walk that is not over by then is late (R24).
-- What cannot walk (paused, parked, its upstream paused) has no next slot, and so is not late. A pause of the schedule itself is somebody's own, and stays.
CREATE OR REPLACE FUNCTION livewell.show_walk(p_type text, p_gap interval)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    INSERT INTO livewell.schedule AS s (name, kind, cron, zone, missed, timeout, internal, due_at, gap, seen_at, created_at)
    SELECT 'walk.' || t.name, 'cron', t.cron, t.zone, 'once', interval '1 day', true,
           CASE WHEN t.paused_at IS NULL AND t.parked_reason IS NULL AND NOT EXISTS (SELECT FROM livewell.upstream u WHERE u.name = t.upstream AND u.paused_at IS NOT NULL) THEN t.cron_due_at END,
           p_gap, v_now, v_now
    FROM livewell.data_type t WHERE t.name = p_type AND t.strategy = 'scheduled'
    ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, cron = excluded.cron, zone = excluded.zone, due_at = excluded.due_at, gap = excluded.gap, seen_at = excluded.seen_at
    WHERE s.internal;
END
$$;
COMMENT ON FUNCTION livewell.show_walk IS 'Shows the walk of a scheduled type among the schedules.';
REVOKE ALL ON FUNCTION livewell.show_walk FROM PUBLIC;
