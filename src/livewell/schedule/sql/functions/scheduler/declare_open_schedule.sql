-- Say that an open-ended schedule exists, by which cron text it is due, and whether its work can be done.
--
-- Called by: show_walk; sync_walks(), for every scheduled type whose schedule says something else.
-- A rule that is as it was leaves the next slot alone. A new rule is planned anew by the next scheduler
-- that looks, and a run that is under way has failed.
-- A schedule that an app has declared under this name is left alone.
CREATE OR REPLACE FUNCTION livewell.declare_open_schedule(
    p_name text, p_cron text, p_zone text, p_held boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz;
    v_row   livewell.schedule;
BEGIN
    SELECT * INTO v_row FROM livewell.schedule s WHERE s.name = p_name FOR NO KEY UPDATE;
    IF NOT v_row.internal THEN
        RETURN;
    END IF;
    IF v_row.open_ended AND (v_row.cron, v_row.zone) IS DISTINCT FROM (p_cron, p_zone) THEN
        PERFORM livewell.fail_open_run(p_name);
    END IF;
    PERFORM livewell.declare_schedule(
        p_name, 'cron', p_cron, p_zone, NULL, NULL, 'once', interval '1 day', true, false);
    v_now := livewell.now();
    UPDATE livewell.schedule s
    SET open_ended = true, held_at = CASE WHEN p_held THEN coalesce(s.held_at, v_now) END
    WHERE s.name = p_name;
END
$$;
COMMENT ON FUNCTION livewell.declare_open_schedule IS
    'Adds an open-ended schedule, changes its rule, or holds it.';
REVOKE ALL ON FUNCTION livewell.declare_open_schedule FROM PUBLIC;
