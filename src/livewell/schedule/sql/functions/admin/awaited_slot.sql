-- The slot that a schedule is late for, if it is late: its next one.
--
-- Called by: list_schedules() and late_schedules().
-- Index:     run_running_idx (schedule) WHERE state = 'running'
-- An open-ended run has no timeout. While one is under way its own slot counts: a run that is not over
-- when the next one would be is late. A schedule that is held is late for nothing.
CREATE OR REPLACE FUNCTION livewell.awaited_slot(p_schedule livewell.schedule)
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT CASE WHEN (p_schedule).held_at IS NULL THEN coalesce(
        (SELECT min(r.due_at) FROM livewell.run r
         WHERE (p_schedule).open_ended AND r.schedule = (p_schedule).name AND r.state = 'running'),
        (p_schedule).due_at) END
$$;
COMMENT ON FUNCTION livewell.awaited_slot IS 'The slot from which lateness counts.';
REVOKE ALL ON FUNCTION livewell.awaited_slot FROM PUBLIC;
