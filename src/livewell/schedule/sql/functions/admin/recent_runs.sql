-- The latest runs of several schedules, the oldest first: how each ended, and how long it took.
--
-- Called by: the dashboard, once for all schedules of a page.
-- Index:     run_schedule_idx (schedule, id), backwards, p_runs rows for each schedule. At most 20 runs
--            of 1,000 schedules.
-- seconds: NULL for slots that were skipped; of a run that runs, until now.
CREATE OR REPLACE FUNCTION livewell.recent_runs(p_schedules text[], p_runs integer)
RETURNS TABLE (schedule text, states text[], seconds float8[])
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
    v_runs  integer := least(greatest(p_runs, 1), 20);
BEGIN
    RETURN QUERY
    SELECT g.name, array_agg(r.state::text ORDER BY r.id),
        array_agg(
            extract(epoch FROM coalesce(r.finished_at, v_now) - r.started_at)::float8 ORDER BY r.id
        )
    FROM unnest(p_schedules[:1000]) AS g (name)
    CROSS JOIN LATERAL (
        SELECT o.id, o.state, o.started_at, o.finished_at FROM livewell.run o
        WHERE o.schedule = g.name COLLATE "C"
        ORDER BY o.id DESC LIMIT v_runs
    ) r
    GROUP BY g.name;
END
$$;
COMMENT ON FUNCTION livewell.recent_runs IS
    'States and durations of the latest runs of each of these schedules, oldest first.';
REVOKE ALL ON FUNCTION livewell.recent_runs FROM PUBLIC;
