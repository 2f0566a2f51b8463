-- The scheduled types, and when each walks next; what is wrong with how their walks are shown is mended on the way.
--
-- Called by: refresh/due/check.py, by the holder of the singleton, once a second.
-- Index:     run_running_idx; data_type and schedule are small.
-- A walk shows in the list of schedules as walk.<type>, and each walk is a run in the history (R19). Somebody who asks for a run of it makes the type due now. A type that is not scheduled any more, or is planned
-- anew, ends its walk.
-- shown:     its schedule says what the type says, and says so lately; else the caller shows it (show_walk), for only the caller can read a cron text.
CREATE OR REPLACE FUNCTION livewell.list_walks()
RETURNS TABLE (data_type text, cron text, zone text, due_at timestamptz, paused boolean, shown boolean, now timestamptz)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    DELETE FROM livewell.schedule s
    WHERE s.internal AND s.name LIKE 'walk.%' AND NOT EXISTS (SELECT FROM livewell.data_type t WHERE t.name = substr(s.name, 6) AND t.strategy = 'scheduled');
    UPDATE livewell.run r SET state = 'failed', finished_at = greatest(v_now, r.started_at), error = 'the type was planned anew before its walk was over'
    WHERE r.state = 'running' AND r.schedule LIKE 'walk.%' AND NOT EXISTS (SELECT FROM livewell.data_type t WHERE t.name = substr(r.schedule, 6) AND t.cron_due_at = r.due_at);
    UPDATE livewell.data_type t SET cron_due_at = v_now
    FROM livewell.schedule s WHERE s.name = 'walk.' || t.name AND s.internal AND s.asked_at IS NOT NULL AND t.strategy = 'scheduled' AND t.cron_due_at > v_now;
    RETURN QUERY
    SELECT t.name, t.cron, t.zone, t.cron_due_at, w.paused,
           s.name IS NOT NULL AND (s.cron, s.zone, s.due_at) IS NOT DISTINCT FROM (t.cron, t.zone, CASE WHEN NOT w.paused THEN t.cron_due_at END) AND s.seen_at BETWEEN v_now - interval '20 seconds' AND v_now,
           v_now
    FROM livewell.data_type t
    CROSS JOIN LATERAL (
        SELECT t.paused_at IS NOT NULL OR t.parked_reason IS NOT NULL OR EXISTS (SELECT FROM livewell.upstream u WHERE u.name = t.upstream AND u.paused_at IS NOT NULL) AS paused) w
    LEFT JOIN livewell.schedule s ON s.name = 'walk.' || t.name AND s.internal
    WHERE t.strategy = 'scheduled'
    ORDER BY t.name LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_walks IS 'Scheduled types with their next walk, and whether the list of schedules shows it as it is.';
REVOKE ALL ON FUNCTION livewell.list_walks FROM PUBLIC;
