-- Write down that slots were skipped, and why. Slots that are skipped one after another for one
-- reason are one row, so a schedule that is paused for a month does not fill the history.
--
-- Called by: begin_run(), which holds the schedule's row.
-- Index:     run_schedule_idx (schedule, id)
CREATE OR REPLACE FUNCTION livewell.skip_slots(
    p_name text,
    p_first timestamptz,
    p_last timestamptz,
    p_slots integer,
    p_reason text,
    p_holder text
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_last  livewell.run;
BEGIN
    SELECT * INTO v_last FROM livewell.run r WHERE r.schedule = p_name ORDER BY r.id DESC LIMIT 1;
    IF v_last.state = 'skipped' AND v_last.reason = p_reason AND v_last.last_due_at < p_first THEN
        UPDATE livewell.run r
        SET slots = least(r.slots::bigint + p_slots, 2147483647), last_due_at = p_last,
            finished_at = v_now, holder = p_holder
        WHERE r.id = v_last.id;
        RETURN;
    END IF;
    INSERT INTO livewell.run (
        schedule, due_at, last_due_at, slots, state, reason, holder, finished_at
    )
    VALUES (p_name, p_first, p_last, p_slots, 'skipped', p_reason, p_holder, v_now)
    -- it had its turn before: the clock or the rule was set back
    ON CONFLICT (schedule, due_at) DO NOTHING;
END
$$;
COMMENT ON FUNCTION livewell.skip_slots IS
    'Records skipped slots with their reason, in one row while the reason stays.';
REVOKE ALL ON FUNCTION livewell.skip_slots FROM PUBLIC;
