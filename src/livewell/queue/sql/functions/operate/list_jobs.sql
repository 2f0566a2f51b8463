-- A page of live jobs by id, for people and tools; keyset, never OFFSET.
--
-- Called by: servers and commands of the release before, plain SQL clients; find_jobs has more
--            filters and a bounded look. p_after: the last id of the page before.
CREATE OR REPLACE FUNCTION livewell.list_jobs(
    p_queue text, p_state text, p_after bigint, p_limit integer
)
RETURNS TABLE (
    id bigint, queue text, kind text, state text, lane smallint, priority smallint,
    attempt smallint, max_attempts smallint, lost smallint, progress smallint, progress_note text,
    worker text, run_at timestamptz, created_at timestamptz, started_at timestamptz, last_error text
)
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT j.id, j.queue, j.kind, j.state::text, j.lane, j.priority, j.attempt, j.max_attempts,
        j.lost, j.progress, j.progress_note, w.name, j.run_at, j.created_at, j.started_at,
        j.last_error
    FROM livewell.job j
    LEFT JOIN livewell.worker w ON w.id = j.worker
    WHERE j.id > coalesce(p_after, 0)
        AND (p_queue IS NULL OR j.queue = p_queue)
        AND (p_state IS NULL OR j.state = p_state::livewell.job_state)
    ORDER BY j.id LIMIT least(greatest(p_limit, 1), 1000)
$$;
COMMENT ON FUNCTION livewell.list_jobs IS
    'A page of live jobs after a given id, filtered by queue and state.';
REVOKE ALL ON FUNCTION livewell.list_jobs FROM PUBLIC;
