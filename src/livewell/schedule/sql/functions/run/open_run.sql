-- Begin the run of one slot of an open-ended schedule, unless the last one is still open.
--
-- Called by: take_run(), whose callers hold the schedule's row, so nobody begins another one meanwhile.
-- Index:     run_running_idx (schedule) WHERE state = 'running'
-- Answer:    begun, other or done, as take_run().
CREATE OR REPLACE FUNCTION livewell.open_run(
    p_name text, p_slot timestamptz, p_holder text, p_asked boolean)
RETURNS TABLE (answer text, run_id bigint, fence bigint, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
    v_run   bigint;
BEGIN
    IF EXISTS (
        SELECT FROM livewell.run r WHERE r.schedule = p_name AND r.state = 'running') THEN
        RETURN QUERY SELECT 'other', NULL::bigint, NULL::bigint, 1::float8;
        RETURN;
    END IF;
    INSERT INTO livewell.run (
        schedule, due_at, last_due_at, state, started_at, fence, holder, asked)
    VALUES (p_name, p_slot, p_slot, 'running', greatest(v_now, p_slot), 0, p_holder, p_asked)
    ON CONFLICT (schedule, due_at) DO NOTHING RETURNING id INTO v_run;
    RETURN QUERY
    SELECT CASE WHEN v_run IS NULL THEN 'done' ELSE 'begun' END, v_run, 0::bigint, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.open_run IS 'Inserts the running run of a slot that needs no lease.';
REVOKE ALL ON FUNCTION livewell.open_run FROM PUBLIC;
