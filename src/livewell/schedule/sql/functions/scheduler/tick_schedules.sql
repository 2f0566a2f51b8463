-- What is due now, of the schedules whose handlers the caller has; and for how long nothing will
-- be.
--
-- Called by: schedule/scheduler.py, when the next slot has come, and once a second.
-- Answer:    one row per schedule that is due, was asked for, or has no slot yet, the longest due
--            first; then one row without a name, with the seconds until the next slot (NULL: none
--            is known).
-- Which slots are due is decided here, on the database's clock. The other things a turn does: runs
-- without a lease become crashed, the schedules are marked as seen, and the scheduler's own pulse
-- is kept.
-- Why SKIP LOCKED: a mark that somebody else is making need not be made twice.
CREATE OR REPLACE FUNCTION livewell.tick_schedules(
    p_names text[], p_holder text, p_limit integer DEFAULT 100
)
RETURNS TABLE (
    name text, kind text, cron text, zone text, every interval, missed text, due_at timestamptz,
    asked_at timestamptz, now timestamptz, wait_seconds float8
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    c_pulse CONSTANT interval := '5 seconds';
    v_now   timestamptz;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'schedules run on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    PERFORM livewell.crash_runs(p_limit);
    v_now := livewell.now();
    -- Not only older than: a clock that was set back must not keep an old mark for ever.
    IF NOT EXISTS (
        SELECT FROM livewell.pulse p
        WHERE p.name = 'schedule.loop' AND p.last_at BETWEEN v_now - c_pulse AND v_now
    ) THEN
        PERFORM livewell.record_pulse('schedule.loop', p_holder, c_pulse, 1, 0);
        UPDATE livewell.schedule s
        SET seen_at = v_now
        WHERE s.name = ANY (
            ARRAY(
                SELECT m.name FROM livewell.schedule m
                WHERE m.name = ANY (p_names)
                ORDER BY m.name FOR NO KEY UPDATE SKIP LOCKED
            )
        );
    ELSIF EXISTS (
        SELECT FROM livewell.schedule s
        WHERE s.name = ANY (p_names)
            AND s.seen_at NOT BETWEEN v_now - interval '20 seconds' AND v_now
    ) THEN
        UPDATE livewell.schedule s
        SET seen_at = v_now
        WHERE s.name = ANY (
            ARRAY(
                SELECT m.name FROM livewell.schedule m
                WHERE m.name = ANY (p_names)
                ORDER BY m.name FOR NO KEY UPDATE SKIP LOCKED
            )
        );
    END IF;
    RETURN QUERY
    SELECT s.name, s.kind, s.cron, s.zone, s.every, s.missed, s.due_at, s.asked_at, v_now,
        NULL::float8
    FROM livewell.schedule s
    WHERE s.name = ANY (p_names) AND s.held_at IS NULL
        AND (
            s.asked_at IS NOT NULL OR s.ended_at IS NULL AND (s.due_at <= v_now OR s.due_at IS NULL)
        )
    ORDER BY s.due_at, s.name LIMIT p_limit;
    RETURN QUERY
    SELECT NULL::text, NULL::text, NULL::text, NULL::text, NULL::interval, NULL::text,
        NULL::timestamptz, NULL::timestamptz, v_now,
        extract(epoch FROM min(s.due_at) - v_now)::float8
    FROM livewell.schedule s
    WHERE s.name = ANY (p_names) AND s.held_at IS NULL AND s.ended_at IS NULL AND s.due_at > v_now;
END
$$;
COMMENT ON FUNCTION livewell.tick_schedules IS
    'The schedules that are due now, and the seconds until the next one is.';
REVOKE ALL ON FUNCTION livewell.tick_schedules FROM PUBLIC;
