-- End the open run of a schedule that was changed or removed.
--
-- Called by: declare_open_schedule() and remove_open_schedule(), which hold the schedule's row.
-- Index:     run_running_idx (schedule) WHERE state = 'running'
CREATE OR REPLACE FUNCTION livewell.fail_open_run(p_name text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.run r
    SET state = 'failed', finished_at = greatest(v_now, r.started_at),
        error = 'its schedule was changed or removed before it was over'
    WHERE r.schedule = p_name AND r.state = 'running';
END
$$;
COMMENT ON FUNCTION livewell.fail_open_run IS 'Fails the run of an open-ended schedule that has changed.';
REVOKE ALL ON FUNCTION livewell.fail_open_run FROM PUBLIC;
