-- The names of what is late, and for how many seconds: what an outside watchdog is told (R24).
--
-- Called by: rule_schedule_late, state_schedules; GET /health/schedules, without a login: names and
--            numbers, nothing else. Bounded: there are 1,000 schedules at most.
-- Where no scheduler ever ran, its own loop is late: nothing periodic happens there.
CREATE OR REPLACE FUNCTION livewell.late_schedules()
RETURNS TABLE (name text, late_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT l.name, extract(epoch FROM v_now - l.late_at)::float8
    FROM (
        SELECT s.name, livewell.late_at(livewell.awaited_slot(s), s.gap) AS late_at
        FROM livewell.schedule s
        WHERE s.paused_at IS NULL AND s.ended_at IS NULL
        UNION ALL
        SELECT p.name, livewell.late_at(p.last_at + p.every, p.every) FROM livewell.pulse p
        UNION ALL
        SELECT 'queue.maintain', livewell.late_at(t.last_at, interval '2 seconds')
        FROM livewell.tick t
        WHERE t.name = 'maintain'
        UNION ALL
        SELECT 'schedule.loop', v_now - interval '1 second'
        WHERE NOT EXISTS (SELECT FROM livewell.pulse p WHERE p.name = 'schedule.loop')
    ) l
    WHERE l.late_at < v_now
    ORDER BY l.name;
END
$$;
COMMENT ON FUNCTION livewell.late_schedules IS 'What is late, by name: schedules and loops.';
REVOKE ALL ON FUNCTION livewell.late_schedules FROM PUBLIC;
