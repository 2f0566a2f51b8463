-- Write down how far the walk of a scheduled type is: one run for each, begun with its first page and ended with its last, whoever walks (R19).
--
-- Called by: dispatch_scheduled(), in the transaction of the page.
-- p_first: it begins, and whoever asked for it has it; who asks while it is under way gets another.
-- The slot is when the type was due. Somebody who goes on after a restart goes on with the same run: nothing was lost, and nothing crashed.
CREATE OR REPLACE FUNCTION livewell.record_walk(p_name text, p_fence bigint, p_type text, p_due timestamptz, p_rows integer, p_first boolean, p_over boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_asked     boolean;
BEGIN
    UPDATE livewell.schedule s SET asked_at = NULL WHERE p_first AND s.name = 'walk.' || p_type AND s.asked_at IS NOT NULL;
    v_asked := FOUND;
    INSERT INTO livewell.run AS r (schedule, due_at, last_due_at, started_at, finished_at, fence, rows_affected, state, asked, holder)
    SELECT 'walk.' || p_type, p_due, p_due, v_now, CASE WHEN p_over THEN v_now END, p_fence, p_rows, CASE WHEN p_over THEN 'succeeded'::livewell.run_state ELSE 'running' END, v_asked, h.holder
    FROM livewell.singleton h WHERE h.name = p_name
    ON CONFLICT (schedule, due_at) DO UPDATE
    SET fence = excluded.fence, holder = excluded.holder, rows_affected = r.rows_affected + excluded.rows_affected, state = excluded.state, error = NULL,
        finished_at = CASE WHEN p_over THEN greatest(v_now, r.started_at) END;
END
$$;
COMMENT ON FUNCTION livewell.record_walk IS 'Begins, continues or ends the run that stands for the walk of a scheduled type.';
REVOKE ALL ON FUNCTION livewell.record_walk FROM PUBLIC;
