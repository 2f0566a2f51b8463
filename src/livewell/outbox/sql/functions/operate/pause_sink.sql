-- Stop or start claiming for a sink. What is on its way goes on; events are kept meanwhile.
--
-- Called by: OutboxAdmin.pause.
CREATE OR REPLACE FUNCTION livewell.pause_sink(p_sink text, p_paused boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    UPDATE livewell.event_sink s
    SET paused_at = CASE WHEN p_paused THEN coalesce(s.paused_at, v_now) END
    WHERE s.name = p_sink;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.pause_sink IS
    'Pauses or resumes a sink; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.pause_sink FROM PUBLIC;
