-- Forget a schedule that is no longer in anybody's code, or a loop that nobody runs any more. Its
-- runs stay in the history until their time is over.
--
-- Called by: CLI `schedules remove`.
-- Answer:    removed; in use: a process that has its handler was here within a minute, and would
--            only declare it again; unknown
CREATE OR REPLACE FUNCTION livewell.remove_schedule(p_name text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_seen  timestamptz;
BEGIN
    SELECT max(f.seen_at) INTO v_seen
    FROM (
        SELECT s.seen_at FROM livewell.schedule s
        WHERE s.name = p_name
        UNION ALL
        SELECT p.last_at FROM livewell.pulse p
        WHERE p.name = p_name
    ) f;
    IF v_seen IS NULL THEN
        RETURN 'unknown';
    END IF;
    IF v_seen > v_now - interval '1 minute' THEN
        RETURN 'in use';
    END IF;
    DELETE FROM livewell.schedule s WHERE s.name = p_name;
    DELETE FROM livewell.pulse p WHERE p.name = p_name;
    RETURN 'removed';
END
$$;
COMMENT ON FUNCTION livewell.remove_schedule IS
    'Removes a schedule or a loop that no process has any more.';
REVOKE ALL ON FUNCTION livewell.remove_schedule FROM PUBLIC;
