-- One run: what became of a slot. For people.
--
-- Called by: the page of a run.
-- Index:     run_pkey.
CREATE OR REPLACE FUNCTION livewell.show_run(p_id bigint)
RETURNS TABLE (
    id bigint, schedule text, state text, reason text, slots integer, asked boolean,
    due_at timestamptz, last_due_at timestamptz, started_at timestamptz, finished_at timestamptz,
    holder text, rows_affected bigint, error text
)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT r.id, r.schedule, r.state::text, r.reason, r.slots, r.asked, r.due_at, r.last_due_at,
        r.started_at, r.finished_at, r.holder, r.rows_affected, r.error
    FROM livewell.run r
    WHERE r.id = p_id
$$;
COMMENT ON FUNCTION livewell.show_run IS 'One run of a schedule.';
REVOKE ALL ON FUNCTION livewell.show_run FROM PUBLIC;
