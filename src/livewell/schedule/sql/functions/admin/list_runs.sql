-- A page of runs, the newest first; of one schedule, or of all. Keyset, never OFFSET.
--
-- Called by: CLI `runs list|history`, GET /v1/runs and /v1/runs/{schedule}. p_before: the id of the
--            last run of the page before; NULL begins.
-- Index:     run_pkey, or run_schedule_idx (schedule, id).
CREATE OR REPLACE FUNCTION livewell.list_runs(p_schedule text, p_before bigint, p_limit integer)
RETURNS TABLE (
    id bigint, schedule text, state text, reason text, slots integer, asked boolean,
    due_at timestamptz, last_due_at timestamptz, started_at timestamptz, finished_at timestamptz,
    holder text, rows_affected bigint, error text
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_limit     integer := least(greatest(p_limit, 1), 1000);
    v_before    bigint := coalesce(p_before, 9223372036854775807);
BEGIN
    -- Two statements, so that each has the plan of its own index.
    IF p_schedule IS NULL THEN
        RETURN QUERY
        SELECT r.id, r.schedule, r.state::text, r.reason, r.slots, r.asked, r.due_at, r.last_due_at,
            r.started_at, r.finished_at, r.holder, r.rows_affected, r.error
        FROM livewell.run r
        WHERE r.id < v_before
        ORDER BY r.id DESC LIMIT v_limit;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT r.id, r.schedule, r.state::text, r.reason, r.slots, r.asked, r.due_at, r.last_due_at,
        r.started_at, r.finished_at, r.holder, r.rows_affected, r.error
    FROM livewell.run r
    WHERE r.schedule = p_schedule AND r.id < v_before
    ORDER BY r.id DESC LIMIT v_limit;
END
$$;
COMMENT ON FUNCTION livewell.list_runs IS 'A page of runs before a given id, newest first.';
REVOKE ALL ON FUNCTION livewell.list_runs FROM PUBLIC;
