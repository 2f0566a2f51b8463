-- Set the next slot; without one the schedule has ended.
--
-- Called by: begin_run(), which holds the schedule's row.
CREATE OR REPLACE FUNCTION livewell.move_schedule(p_name text, p_next timestamptz, p_gap interval)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.schedule s
    SET due_at = p_next, gap = p_gap, ended_at = CASE WHEN p_next IS NULL THEN v_now END
    WHERE s.name = p_name;
END
$$;
COMMENT ON FUNCTION livewell.move_schedule IS 'Moves a schedule to its next slot, or ends it.';
REVOKE ALL ON FUNCTION livewell.move_schedule FROM PUBLIC;
