-- End a run and give its lease back, if the term is still ours.
--
-- Called by: schedule/run.py. False is the answer "fenced": the lease had run out or is somebody
--            else's, and nothing was written.
-- Asked again after an unknown answer it says true once more.
CREATE OR REPLACE FUNCTION livewell.finish_run(
    p_run bigint, p_fence bigint, p_succeeded boolean, p_error text, p_rows bigint
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz;
    v_row   livewell.run;
BEGIN
    SELECT * INTO v_row FROM livewell.run r WHERE r.id = p_run AND r.fence = p_fence;
    IF NOT FOUND OR v_row.state NOT IN ('running', 'crashed') THEN
        RETURN FOUND;
    END IF;
    IF NOT livewell.hold_singleton('schedule.' || v_row.schedule, p_fence) THEN
        RETURN false;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.run r
    SET state = CASE WHEN p_succeeded THEN 'succeeded'::livewell.run_state ELSE 'failed' END,
        finished_at = greatest(v_now, r.started_at), error = livewell.redact(p_error),
        rows_affected = p_rows
    WHERE r.id = p_run AND r.state = 'running';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    RETURN livewell.release_singleton('schedule.' || v_row.schedule, p_fence);
END
$$;
COMMENT ON FUNCTION livewell.finish_run IS
    'Ends a run under its fence and releases its lease; false when it is not ours any more.';
REVOKE ALL ON FUNCTION livewell.finish_run FROM PUBLIC;
