-- Ask for a run beside the slots, now.
--
-- Called by: test_channel; CLI `schedules run`, POST /v1/schedules/{name}/run, the dashboard. A run
--            that was asked for already is not asked for twice.
-- Types have their full names: test_channel runs it as its owner.
-- Answer:    asked; nobody: it is asked for, and waits for a process that has its handler; unknown
CREATE OR REPLACE FUNCTION livewell.ask_run(p_name text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamp with time zone;
    v_seen  timestamp with time zone;
BEGIN
    SELECT s.seen_at INTO v_seen FROM livewell.schedule s WHERE s.name = p_name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    v_now := livewell.now();
    UPDATE livewell.schedule s SET asked_at = coalesce(s.asked_at, v_now) WHERE s.name = p_name;
    RETURN CASE WHEN v_seen < v_now - interval '1 minute' THEN 'nobody' ELSE 'asked' END;
END
$$;
COMMENT ON FUNCTION livewell.ask_run IS 'Asks for a run of a schedule beside its slots.';
REVOKE ALL ON FUNCTION livewell.ask_run FROM PUBLIC;
