-- Stop or start claiming from a queue. What already runs goes on.
--
-- Called by: CLI `queues pause|resume`, clients.
CREATE OR REPLACE FUNCTION livewell.pause_queue(p_name text, p_paused boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.queue q
    SET paused_at = CASE WHEN p_paused THEN coalesce(q.paused_at, v_now) END
    WHERE q.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.pause_queue IS
    'Pauses or resumes a queue; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.pause_queue FROM PUBLIC;
