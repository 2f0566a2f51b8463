-- Begin the walk of a scheduled type whose slot has come, as the due check of 0.6.0 does it. Goes with 0.8.
--
-- Called by: dispatch_scheduled(), for workers of 0.6.0: their schedulers do not know walks, so a fleet
--            that was not replaced yet would begin none. p_next: the slot after this one.
CREATE OR REPLACE FUNCTION livewell.begin_walk(p_type text, p_next timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_holder CONSTANT text := 'a worker of 0.6.0';
    v_now   timestamptz := livewell.now();
    v_row   livewell.schedule;
BEGIN
    SELECT * INTO v_row FROM livewell.schedule s
    WHERE s.name = 'walk.' || p_type AND s.open_ended AND s.held_at IS NULL;
    IF v_row.asked_at IS NOT NULL THEN
        PERFORM livewell.begin_asked_run(v_row.name, c_holder, interval '1 minute');
    ELSIF v_row.due_at <= v_now THEN
        PERFORM livewell.begin_run(
            v_row.name, c_holder, v_row.due_at, v_row.due_at, p_next, v_row.gap, 0, NULL,
            interval '1 minute');
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.begin_walk IS 'Begins a walk that is due, for workers of 0.6.0.';
REVOKE ALL ON FUNCTION livewell.begin_walk FROM PUBLIC;
