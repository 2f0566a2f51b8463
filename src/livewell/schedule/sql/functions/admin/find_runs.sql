-- Runs that ended in one of these states, the newest first; of one schedule, or of all. A bounded
-- look: of the runs before p_before the newest 10,000 are looked at, however few of them fit.
--
-- Called by: CLI `runs list|history --outcome`, GET /v1/runs?outcome=, the dashboard.
-- Index:     run_pkey, or run_schedule_idx (schedule, id), backwards.
-- looked_to: in every row, the run at which the look ended; NULL if there are no more. The next page
--            begins there if this one is not full. If nothing fits there is one row, with no id.
-- Why no index on the state: schedules that run every second have millions of runs, and a release
-- must not lock the table while an index is made.
CREATE OR REPLACE FUNCTION livewell.find_runs(
    p_schedule text, p_states text[], p_before bigint, p_limit integer)
RETURNS TABLE (
    id bigint, schedule text, state text, reason text, slots integer, asked boolean,
    due_at timestamptz, last_due_at timestamptz, started_at timestamptz, finished_at timestamptz,
    holder text, rows_affected bigint, error text, looked_to bigint
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    c_looked_max CONSTANT integer := 10000;
    v_before    bigint := coalesce(p_before, 9223372036854775807);
    v_to        bigint;
    v_ids       bigint[];
BEGIN
    -- Two statements, so that each has the plan of its own index.
    IF p_schedule IS NULL THEN
        SELECT CASE WHEN count(*) = c_looked_max THEN min(o.id) END,
            array_agg(o.id ORDER BY o.id DESC) FILTER (WHERE o.state = ANY (p_states))
        INTO v_to, v_ids
        FROM (
            SELECT r.id, r.state::text AS state FROM livewell.run r
            WHERE r.id < v_before
            ORDER BY r.id DESC LIMIT c_looked_max
        ) o;
    ELSE
        SELECT CASE WHEN count(*) = c_looked_max THEN min(o.id) END,
            array_agg(o.id ORDER BY o.id DESC) FILTER (WHERE o.state = ANY (p_states))
        INTO v_to, v_ids
        FROM (
            SELECT r.id, r.state::text AS state FROM livewell.run r
            WHERE r.schedule = p_schedule AND r.id < v_before
            ORDER BY r.id DESC LIMIT c_looked_max
        ) o;
    END IF;
    v_ids := v_ids[:least(greatest(p_limit, 1), 1000)];
    RETURN QUERY
    SELECT r.id, r.schedule, r.state::text, r.reason, r.slots, r.asked, r.due_at, r.last_due_at,
        r.started_at, r.finished_at, r.holder, r.rows_affected, r.error, v_to
    FROM (SELECT) one
    LEFT JOIN livewell.run r ON r.id = ANY (v_ids)
    ORDER BY r.id DESC;
END
$$;
COMMENT ON FUNCTION livewell.find_runs IS
    'A page of runs by how they ended, within a bounded look; says how far it looked.';
REVOKE ALL ON FUNCTION livewell.find_runs FROM PUBLIC;
