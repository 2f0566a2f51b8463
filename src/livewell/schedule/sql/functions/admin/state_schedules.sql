-- Every schedule and loop: is it late, when is it next, how did it end last?
--
-- Called by: system_state. Exact, through list_schedules(): there are 1,000 schedules at most.
-- A loop that never turned is not in that list; late_schedules() names it all the same.
CREATE OR REPLACE FUNCTION livewell.state_schedules()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object(
        'how', 'exact',
        'late', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', l.name, 'late_seconds', l.late_seconds
                    ) ORDER BY l.name
                ),
                '[]'
            )
            FROM livewell.late_schedules() l
        ),
        'schedules', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', s.name, 'kind', s.kind, 'state', s.state, 'late', s.late,
                        'due_seconds', extract(epoch FROM s.due_at - v_now)::float8,
                        'last', s.last_state,
                        'ended_seconds', extract(epoch FROM v_now - s.last_finished_at)::float8
                    ) ORDER BY s.name
                ),
                '[]'
            )
            FROM livewell.list_schedules() s
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_schedules IS
    'Schedules and loops for the system state: late, next, and how the last run ended.';
REVOKE ALL ON FUNCTION livewell.state_schedules FROM PUBLIC;
