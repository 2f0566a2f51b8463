-- Rule schedule_late (P0): periodic work has not run when it should have (R24): twice its interval
-- and a minute have passed.
--
-- Called by: evaluate_rule. What is late is decided by late_schedules(), which an outside watchdog
--            is told as well.
CREATE OR REPLACE FUNCTION livewell.rule_schedule_late(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT l.name,
        format('%s: it should have run, and is late by %s min', l.name, floor(l.late_seconds / 60))
    FROM livewell.late_schedules() l;
END
$$;
COMMENT ON FUNCTION livewell.rule_schedule_late IS
    'Schedules that have not run when they should have.';
REVOKE ALL ON FUNCTION livewell.rule_schedule_late FROM PUBLIC;
