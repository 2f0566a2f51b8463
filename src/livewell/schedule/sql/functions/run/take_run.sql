-- Take the lease of a schedule and begin the run of one slot under it.
--
-- Called by: begin_run() and begin_asked_run(), which hold the schedule's row.
-- Answer:    begun    the run is ours, under this fence
--            other    the last run still runs: its lease is over in wait_seconds, unless it is
--                     renewed
--            done     this slot has had its run (the clock or the rule was set back)
-- Whoever gets the lease knows that the run before has lost it: what is left running is crashed
-- (S4).
-- Open-ended: no lease, so nothing crashes. Another run begins when the last one has been ended.
CREATE OR REPLACE FUNCTION livewell.take_run(
    p_name text, p_slot timestamptz, p_holder text, p_lease interval, p_asked boolean
)
RETURNS TABLE (answer text, run_id bigint, fence bigint, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_answer    text;
    v_fence     bigint;
    v_wait      float8;
    v_run       bigint;
BEGIN
    IF (SELECT s.open_ended FROM livewell.schedule s WHERE s.name = p_name) THEN
        RETURN QUERY SELECT * FROM livewell.open_run(p_name, p_slot, p_holder, p_asked);
        RETURN;
    END IF;
    SELECT a.answer, a.fence, a.wait_seconds INTO v_answer, v_fence, v_wait
    FROM livewell.acquire_singleton('schedule.' || p_name, p_holder, NULL, p_lease) a;
    IF v_answer <> 'held' THEN
        RETURN QUERY SELECT 'other', NULL::bigint, NULL::bigint, v_wait;
        RETURN;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.run r
    SET state = 'crashed', finished_at = greatest(v_now, r.started_at),
        error = 'its lease ran out: the process ended, stood still, or lost the database'
    WHERE r.schedule = p_name AND r.state = 'running';
    -- It was due when the caller looked: a clock that stepped back since then has not made it
    -- early.
    INSERT INTO livewell.run (
        schedule, due_at, last_due_at, state, started_at, fence, holder, asked
    )
    VALUES (p_name, p_slot, p_slot, 'running', greatest(v_now, p_slot), v_fence, p_holder, p_asked)
    ON CONFLICT (schedule, due_at) DO NOTHING
    RETURNING id
    INTO v_run;
    IF v_run IS NULL THEN
        PERFORM livewell.release_singleton('schedule.' || p_name, v_fence);
        RETURN QUERY SELECT 'done', NULL::bigint, NULL::bigint, NULL::float8;
        RETURN;
    END IF;
    RETURN QUERY SELECT 'begun', v_run, v_fence, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.take_run IS
    'Acquires the lease of a schedule and inserts the running run of a slot.';
REVOKE ALL ON FUNCTION livewell.take_run FROM PUBLIC;
