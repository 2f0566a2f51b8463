-- Stop or start refreshing one type. What is already a job is done; what is stored is read as
-- before, with its true verdict.
--
-- Called by: CLI `types pause|resume`, clients.
-- Resuming also lets go of the reason for which the type was parked: the plan may include its
-- endpoint by now, and if not the next answer says so again.
CREATE OR REPLACE FUNCTION livewell.pause_type(p_name text, p_paused boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.data_type t
    SET paused_at = CASE WHEN p_paused THEN coalesce(t.paused_at, v_now) END,
        parked_reason = CASE WHEN p_paused THEN t.parked_reason END
    WHERE t.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.pause_type IS
    'Pauses or resumes the refreshes of a type; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.pause_type FROM PUBLIC;
