-- Give a cron schedule its first slot.
--
-- Called by: plan_cron; schedule/scheduler.py, which can read cron texts, for a schedule that
--            tick_schedules shows without a slot.
-- The text and the zone come along, so that a slot of an old rule is never given to a new one.
CREATE OR REPLACE FUNCTION livewell.plan_schedule(
    p_name text, p_cron text, p_zone text, p_due timestamptz, p_gap interval
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.schedule s
    SET due_at = p_due, gap = p_gap
    WHERE s.name = p_name
        AND s.kind = 'cron'
        AND s.cron = p_cron
        AND s.zone = p_zone
        AND s.due_at IS NULL
        AND s.ended_at IS NULL;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.plan_schedule IS
    'Sets the first slot of a cron schedule that has none.';
REVOKE ALL ON FUNCTION livewell.plan_schedule FROM PUBLIC;
