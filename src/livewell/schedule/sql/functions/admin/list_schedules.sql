-- Every schedule with its next slot and its latest run, and every loop with its pulse, by name
-- (S5).
--
-- Called by: state_schedules; CLI `schedules list`, GET /v1/schedules, the dashboard. Bounded: there
--            are 1,000 schedules at most.
-- Index:     run_schedule_idx (schedule, id), once per schedule.
-- state: running, asked, waiting, paused, ended, or orphaned: no process that has its handler was
-- here for a minute. A loop is turning or stopped.
CREATE OR REPLACE FUNCTION livewell.list_schedules()
RETURNS TABLE (
    name text, kind text, rule text, zone text, missed text, internal boolean, state text,
    due_at timestamptz, late_at timestamptz, late boolean, timeout_seconds float8,
    seen_at timestamptz, last_state text, last_reason text, last_due_at timestamptz,
    last_started_at timestamptz, last_finished_at timestamptz, last_error text, last_rows bigint,
    holder text, turns bigint, done bigint, paused_at timestamptz
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT s.name, s.kind, coalesce(s.cron, s.every::text, s.at::text), s.zone, s.missed,
        s.internal,
        CASE
            WHEN EXISTS (
                SELECT FROM livewell.run o WHERE o.schedule = s.name AND o.state = 'running'
            )
                THEN 'running'
            WHEN s.seen_at < v_now - interval '1 minute' THEN 'orphaned'
            WHEN s.asked_at IS NOT NULL THEN 'asked'
            WHEN s.paused_at IS NOT NULL THEN 'paused'
            WHEN s.ended_at IS NOT NULL THEN 'ended'
            ELSE 'waiting'
        END,
        CASE WHEN s.held_at IS NULL THEN s.due_at END,
        CASE WHEN s.paused_at IS NULL THEN l.late_at END,
        s.paused_at IS NULL AND coalesce(l.late_at < v_now, false),
        extract(epoch FROM s.timeout)::float8, s.seen_at, r.state::text, r.reason, r.last_due_at,
        r.started_at, r.finished_at, r.error, r.rows_affected, r.holder, NULL::bigint, NULL::bigint,
        s.paused_at
    FROM livewell.schedule s
    CROSS JOIN LATERAL (
        SELECT livewell.late_at(livewell.awaited_slot(s), s.gap) AS late_at
    ) l
    LEFT JOIN LATERAL (
        SELECT * FROM livewell.run o WHERE o.schedule = s.name ORDER BY o.id DESC LIMIT 1
    ) r ON true
    UNION ALL
    SELECT p.name, 'loop', p.every::text, NULL, NULL, true,
        CASE
            WHEN livewell.late_at(p.last_at + p.every, p.every) < v_now THEN 'stopped'
            ELSE 'turning'
        END,
        NULL, livewell.late_at(p.last_at + p.every, p.every),
        livewell.late_at(p.last_at + p.every, p.every) < v_now, NULL, p.last_at, NULL, NULL, NULL,
        NULL, p.last_at, NULL, NULL, p.holder, p.turns, p.done, NULL
    FROM livewell.pulse p
    UNION ALL
    SELECT 'queue.maintain', 'loop', (interval '1 second')::text, NULL, NULL, true,
        CASE
            WHEN livewell.late_at(t.last_at, interval '2 seconds') < v_now THEN 'stopped'
            ELSE 'turning'
        END,
        NULL, livewell.late_at(t.last_at, interval '2 seconds'),
        livewell.late_at(t.last_at, interval '2 seconds') < v_now, NULL, t.last_at, NULL, NULL,
        NULL, NULL, t.last_at, NULL, NULL, t.last_worker::text, t.n, NULL,
        NULL
    FROM livewell.tick t
    WHERE t.name = 'maintain' AND t.last_at IS NOT NULL
    ORDER BY 1;
END
$$;
COMMENT ON FUNCTION livewell.list_schedules IS
    'Schedules and loops with their next slot, their latest run, and whether they are late.';
REVOKE ALL ON FUNCTION livewell.list_schedules FROM PUBLIC;
