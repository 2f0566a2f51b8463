-- Say that a schedule exists, and by which rule it is due; a process that has its handler says so
-- when it starts.
--
-- Called by: declare_open_schedule; schedule/scheduler.py, for each of its schedules.
-- A rule that is as it was leaves the next slot alone, so a restart neither forgets a slot nor adds
-- one. A new rule is planned anew from now on; a cron text is planned by the caller
-- (plan_schedule).
-- p_at_once: the first slot of an interval is now, and not one interval from now.
CREATE OR REPLACE FUNCTION livewell.declare_schedule(
    p_name text,
    p_kind text,
    p_cron text,
    p_zone text,
    p_every interval,
    p_at timestamptz,
    p_missed text,
    p_timeout interval,
    p_internal boolean,
    p_at_once boolean
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_schedules_max CONSTANT integer := 1000;
    v_now   timestamptz;
    v_first timestamptz;
    v_row   livewell.schedule;
BEGIN
    SELECT * INTO v_row FROM livewell.schedule s WHERE s.name = p_name FOR NO KEY UPDATE;
    v_now := livewell.now();
    v_first := CASE p_kind
        WHEN 'once' THEN p_at
        WHEN 'interval' THEN CASE WHEN p_at_once THEN v_now ELSE v_now + p_every END END;
    IF v_row.name IS NULL THEN
        IF (SELECT count(*) FROM livewell.schedule) >= c_schedules_max THEN
            RAISE EXCEPTION
                'schedule %: there are % already; remove some with: livewell schedules remove NAME',
                p_name, c_schedules_max
                USING ERRCODE = 'LW003';
        END IF;
        INSERT INTO livewell.schedule (
            name, kind, cron, zone, every, at, missed, timeout, internal, due_at, gap, seen_at,
            created_at
        )
        VALUES (
            p_name, p_kind, p_cron, p_zone, p_every, p_at, p_missed, p_timeout, p_internal, v_first,
            coalesce(p_every, '0'), v_now, v_now
        )
        -- another process of the same app, at the same moment
        ON CONFLICT (name) DO NOTHING;
        RETURN;
    END IF;
    UPDATE livewell.schedule s
    SET missed = p_missed, timeout = p_timeout, internal = p_internal, seen_at = v_now
    WHERE s.name = p_name;
    IF (
        v_row.kind, v_row.cron, v_row.zone, v_row.every, v_row.at
    ) IS DISTINCT FROM (p_kind, p_cron, p_zone, p_every, p_at)
    THEN
        UPDATE livewell.schedule s
        SET kind = p_kind, cron = p_cron, zone = p_zone, every = p_every, at = p_at,
            due_at = v_first, gap = coalesce(p_every, '0'), ended_at = NULL
        WHERE s.name = p_name;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.declare_schedule IS
    'Adds a schedule or changes its rule; an unchanged rule keeps its next slot.';
REVOKE ALL ON FUNCTION livewell.declare_schedule FROM PUBLIC;
