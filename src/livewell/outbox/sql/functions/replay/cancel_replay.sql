-- End a replay: it feeds nothing more. What it has fed, 5,000 events at most, is still delivered.
--
-- Called by: OutboxAdmin.cancel_replay.
-- Answer:    ended; done or cancelled, if it was so already; NULL: there is none.
CREATE OR REPLACE FUNCTION livewell.cancel_replay(p_replay bigint)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz;
    v_state text;
BEGIN
    SELECT y.state INTO v_state FROM livewell.event_replay y WHERE y.id = p_replay FOR UPDATE;
    IF NOT FOUND OR v_state <> 'running' THEN
        RETURN v_state;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.event_replay y SET state = 'cancelled', ended_at = v_now WHERE y.id = p_replay;
    RETURN 'ended';
END
$$;
COMMENT ON FUNCTION livewell.cancel_replay IS
    'Ends a replay; what it has fed is still delivered.';
REVOKE ALL ON FUNCTION livewell.cancel_replay FROM PUBLIC;
