-- Stop or start refreshing everything that comes from one upstream. What is already a job is done.
--
-- Called by: CLI `types pause|resume --upstream`, clients.
CREATE OR REPLACE FUNCTION livewell.pause_upstream(p_name text, p_paused boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.upstream u
    SET paused_at = CASE WHEN p_paused THEN coalesce(u.paused_at, v_now) END
    WHERE u.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.pause_upstream IS
    'Pauses or resumes the refreshes of an upstream; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.pause_upstream FROM PUBLIC;
