-- Write down a page of a walk that was being taken while the schema was upgraded. Goes with 0.8.
--
-- Called by: dispatch_scheduled() of 0.6.0, in the middle of a page. Since 0.7.0 it calls count_open_run().
CREATE OR REPLACE FUNCTION livewell.record_walk(
    p_name text, p_fence bigint, p_type text, p_due timestamptz, p_rows integer, p_first boolean,
    p_over boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM livewell.count_open_run(r.id, NULL, p_rows, p_over)
    FROM livewell.run r WHERE r.schedule = 'walk.' || p_type AND r.state = 'running';
END
$$;
COMMENT ON FUNCTION livewell.record_walk IS 'Counts a page of a walk, for pages of 0.6.0 that are under way.';
REVOKE ALL ON FUNCTION livewell.record_walk FROM PUBLIC;
