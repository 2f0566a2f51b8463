-- Bring the schedule of one scheduled type in line with the registry, as the due check of 0.6.0 does it.
-- Goes with 0.8.
--
-- Called by: the due check of workers of 0.6.0, for what list_walks() answers as not shown. Since 0.7.0
--            sync_walks() does it for all types. p_gap is not used: the scheduler knows the true one.
CREATE OR REPLACE FUNCTION livewell.show_walk(p_type text, p_gap interval)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM livewell.declare_open_schedule(
        'walk.' || t.name, t.cron, t.zone, livewell.walk_held(t))
    FROM livewell.data_type t WHERE t.name = p_type AND t.strategy = 'scheduled';
END
$$;
COMMENT ON FUNCTION livewell.show_walk IS 'Declares the schedule of a scheduled type, for workers of 0.6.0.';
REVOKE ALL ON FUNCTION livewell.show_walk FROM PUBLIC;
