-- All queues that the refreshes of an upstream go through: its own and those of its pools.
--
-- Called by: plan_upstreams; dispatch_room, drop_refreshes, plan_state. There are tens of queues,
--            so all are read.
CREATE OR REPLACE FUNCTION livewell.list_refresh_queues(p_upstream text)
RETURNS text[]
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_own   pg_catalog.text := livewell.refresh_queue(p_upstream);
BEGIN
    RETURN ARRAY(
        SELECT q.name FROM livewell.queue q
        WHERE q.name = v_own OR starts_with(q.name, v_own || '.'));
END
$$;
COMMENT ON FUNCTION livewell.list_refresh_queues IS 'The queues of the refreshes of an upstream.';
REVOKE ALL ON FUNCTION livewell.list_refresh_queues FROM PUBLIC;
