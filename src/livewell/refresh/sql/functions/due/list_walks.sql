-- The scheduled types as the due check of 0.6.0 reads them. Goes with 0.8.
--
-- Called by: the due check of workers of 0.6.0, once a second.
-- Index:     schedule_pkey, run_running_idx; data_type is small.
-- due_at:    of an open walk its slot; else when it was asked for, or its next slot. NULL: not planned,
--            and the caller plans it (plan_cron). Without a schedule: soon, so that the caller shows it.
-- shown:     its schedule says what the type says, and says so lately; else the caller calls show_walk.
CREATE OR REPLACE FUNCTION livewell.list_walks()
RETURNS TABLE (
    data_type text, cron text, zone text, due_at timestamptz, paused boolean, shown boolean,
    now timestamptz
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT t.name, t.cron, t.zone,
           CASE WHEN s.name IS NULL THEN v_now + interval '1 second'
                ELSE coalesce(r.due_at, s.asked_at, s.due_at) END,
           h.held,
           (s.cron, s.zone, s.held_at IS NOT NULL) IS NOT DISTINCT FROM (t.cron, t.zone, h.held)
               AND s.seen_at BETWEEN v_now - interval '20 seconds' AND v_now,
           v_now
    FROM livewell.data_type t
    CROSS JOIN LATERAL (SELECT livewell.walk_held(t) AS held) h
    LEFT JOIN livewell.schedule s ON s.name = 'walk.' || t.name AND s.open_ended
    LEFT JOIN livewell.run r ON r.schedule = s.name AND r.state = 'running'
    WHERE t.strategy = 'scheduled'
    ORDER BY t.name LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_walks IS 'Scheduled types with their next walk, for workers of 0.6.0.';
REVOKE ALL ON FUNCTION livewell.list_walks FROM PUBLIC;
