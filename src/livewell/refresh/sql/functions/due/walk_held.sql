-- True if a scheduled type cannot walk now: it is paused or parked, or its upstream is paused.
--
-- Called by: show_walk; sync_walks(), dispatch_scheduled(), list_walks().
-- Index:     upstream_pkey
CREATE OR REPLACE FUNCTION livewell.walk_held(p_type livewell.data_type)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT (p_type).paused_at IS NOT NULL OR (p_type).parked_reason IS NOT NULL OR EXISTS (
        SELECT FROM livewell.upstream u WHERE u.name = (p_type).upstream AND u.paused_at IS NOT NULL)
$$;
COMMENT ON FUNCTION livewell.walk_held IS 'Whether a pause keeps a scheduled type from walking.';
REVOKE ALL ON FUNCTION livewell.walk_held FROM PUBLIC;
