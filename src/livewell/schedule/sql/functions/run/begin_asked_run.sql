-- Begin the run that somebody asked for, beside the slots; also of a schedule that is paused or has
-- ended.
--
-- Called by: begin_walk; schedule/scheduler.py, for a schedule that tick_schedules shows with
--            asked_at.
-- Answer:    begun, waiting or moved, as begin_run(). It waits while the last run still runs: who
--            asked wants it to happen.
CREATE OR REPLACE FUNCTION livewell.begin_asked_run(p_name text, p_holder text, p_lease interval)
RETURNS TABLE (answer text, run_id bigint, fence bigint, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_asked timestamptz;
    v_taken record;
BEGIN
    SELECT s.asked_at INTO v_asked FROM livewell.schedule s
    WHERE s.name = p_name
    FOR NO KEY UPDATE SKIP LOCKED;
    IF v_asked IS NULL THEN
        RETURN QUERY SELECT 'moved', NULL::bigint, NULL::bigint, NULL::float8;
        RETURN;
    END IF;
    SELECT * INTO v_taken FROM livewell.take_run(p_name, v_asked, p_holder, p_lease, true);
    IF v_taken.answer = 'other' THEN
        RETURN QUERY SELECT 'waiting', NULL::bigint, NULL::bigint, v_taken.wait_seconds;
        RETURN;
    END IF;
    UPDATE livewell.schedule s SET asked_at = NULL WHERE s.name = p_name;
    RETURN QUERY
    SELECT CASE v_taken.answer WHEN 'begun' THEN 'begun' ELSE 'moved' END, v_taken.run_id,
        v_taken.fence, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.begin_asked_run IS
    'Begins the run that somebody asked for, under the lease of its schedule.';
REVOKE ALL ON FUNCTION livewell.begin_asked_run FROM PUBLIC;
