-- Write down what was done for an open-ended run, and end it if that was all.
--
-- Called by: record_walk; dispatch_scheduled(), in the transaction of a page and under a fence of
--            its own.
-- p_holder:  who did it; the run may have had many hands.
-- A run that has been failed meanwhile stays so.
CREATE OR REPLACE FUNCTION livewell.count_open_run(
    p_run bigint, p_holder text, p_rows integer, p_over boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.run r
    SET rows_affected = coalesce(r.rows_affected, 0) + p_rows, holder = coalesce(p_holder, r.holder),
        state = CASE WHEN p_over THEN 'succeeded'::livewell.run_state ELSE r.state END,
        finished_at = CASE WHEN p_over THEN greatest(v_now, r.started_at) END
    WHERE r.id = p_run AND r.state = 'running';
END
$$;
COMMENT ON FUNCTION livewell.count_open_run IS 'Adds to the rows of an open-ended run, or ends it.';
REVOKE ALL ON FUNCTION livewell.count_open_run FROM PUBLIC;
