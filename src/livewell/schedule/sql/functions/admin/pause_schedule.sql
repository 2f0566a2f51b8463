-- Begin no more runs of a schedule, or begin them again. What runs goes on; slots that come
-- meanwhile are skipped, and the history says so.
--
-- Called by: CLI `schedules pause|resume`, POST /v1/schedules/{name}/pause|resume.
CREATE OR REPLACE FUNCTION livewell.pause_schedule(p_name text, p_paused boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.schedule s
    SET paused_at = CASE WHEN p_paused THEN coalesce(s.paused_at, v_now) END
    WHERE s.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.pause_schedule IS
    'Pauses or resumes a schedule; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.pause_schedule FROM PUBLIC;
