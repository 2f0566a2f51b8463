-- Begin the run of a slot, in one step: the lease with its fence, the run, the skipped slots before
-- it, and the next slot.
--
-- Called by: begin_walk; schedule/scheduler.py, with what it computed from the rule: p_from is the
--            slot that is due, p_slot the one to run (NULL: none), p_skipped slots from p_from to
--            p_skipped_last were missed, p_next comes then.
-- Answer:    begun    run it, under this fence
--            skipped  it was not run, and the history says why
--            waiting  the last run still runs, and this schedule catches up: ask again in
--                     wait_seconds
--            moved    somebody else was first, or the clock says that it is not due
-- Why SKIP LOCKED: the slot is in the hands of whoever has the row; waiting would only tell us so
-- later.
-- A slot that comes while the last run still runs is skipped (R21: nothing overlaps itself), unless
-- the policy is to catch up with all: then it waits.
CREATE OR REPLACE FUNCTION livewell.begin_run(
    p_name text,
    p_holder text,
    p_from timestamptz,
    p_slot timestamptz,
    p_next timestamptz,
    p_gap interval,
    p_skipped integer,
    p_skipped_last timestamptz,
    p_lease interval
)
RETURNS TABLE (answer text, run_id bigint, fence bigint, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_row       livewell.schedule;
    v_answer    text;
    v_run       bigint;
    v_fence     bigint;
    v_wait      float8;
BEGIN
    SELECT * INTO v_row FROM livewell.schedule s
    WHERE s.name = p_name
    FOR NO KEY UPDATE SKIP LOCKED;
    v_now := livewell.now();
    IF v_row.due_at IS DISTINCT FROM p_from
        OR p_from IS NULL
        OR v_row.ended_at IS NOT NULL
        OR coalesce(p_slot, p_from) > v_now
        OR p_slot < p_from
        OR p_next <= coalesce(p_slot, p_skipped_last)
    THEN
        RETURN QUERY SELECT 'moved', NULL::bigint, NULL::bigint, NULL::float8;
        RETURN;
    END IF;
    IF v_row.paused_at IS NOT NULL THEN
        PERFORM livewell.skip_slots(
            p_name, p_from, coalesce(p_slot, p_skipped_last),
            p_skipped + (p_slot IS NOT NULL)::integer, 'paused', p_holder
        );
        PERFORM livewell.move_schedule(p_name, p_next, p_gap);
        RETURN QUERY SELECT 'skipped', NULL::bigint, NULL::bigint, NULL::float8;
        RETURN;
    END IF;
    IF p_skipped > 0 THEN
        PERFORM livewell.skip_slots(p_name, p_from, p_skipped_last, p_skipped, 'missed', p_holder);
    END IF;
    IF p_slot IS NOT NULL THEN
        SELECT t.answer, t.run_id, t.fence, t.wait_seconds INTO v_answer, v_run, v_fence, v_wait
        FROM livewell.take_run(p_name, p_slot, p_holder, p_lease, false) t;
        IF v_answer = 'other' AND v_row.missed = 'all' THEN
            PERFORM livewell.move_schedule(p_name, p_slot, p_gap);
            RETURN QUERY SELECT 'waiting', NULL::bigint, NULL::bigint, v_wait;
            RETURN;
        END IF;
        IF v_answer = 'other' THEN
            PERFORM livewell.skip_slots(p_name, p_slot, p_slot, 1, 'still running', p_holder);
        END IF;
    END IF;
    PERFORM livewell.move_schedule(p_name, p_next, p_gap);
    RETURN QUERY
    SELECT CASE v_answer WHEN 'begun' THEN 'begun' ELSE 'skipped' END, v_run, v_fence, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.begin_run IS
    'Begins the run of a due slot under the lease of its schedule, or records why not.';
REVOKE ALL ON FUNCTION livewell.begin_run FROM PUBLIC;
