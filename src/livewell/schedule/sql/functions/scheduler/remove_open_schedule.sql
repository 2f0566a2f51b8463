-- Forget an open-ended schedule whose work is not wanted any more; a run that is under way has failed.
--
-- Called by: sync_walks(). Its runs stay in the history until their time is over.
CREATE OR REPLACE FUNCTION livewell.remove_open_schedule(p_name text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM FROM livewell.schedule s WHERE s.name = p_name FOR UPDATE;
    PERFORM livewell.fail_open_run(p_name);
    DELETE FROM livewell.schedule s WHERE s.name = p_name AND s.open_ended;
END
$$;
COMMENT ON FUNCTION livewell.remove_open_schedule IS 'Removes an open-ended schedule and fails its run.';
REVOKE ALL ON FUNCTION livewell.remove_open_schedule FROM PUBLIC;
