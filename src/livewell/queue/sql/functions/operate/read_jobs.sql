-- Jobs by their ids as a list shows them: without payloads, in the order of the ids.
--
-- Called by: GET /v1/jobs, CLI `jobs list`, the dashboard; each with ids of find_jobs in the same
--            statement, so that both see one instant.
-- p_state:   the state of the filter; it says in which table they are.
-- Index:     primary keys, job_history_id_idx.
CREATE OR REPLACE FUNCTION livewell.read_jobs(p_ids bigint[], p_state text)
RETURNS TABLE (
    id bigint, queue text, kind text, state text, lane smallint, priority smallint,
    attempt smallint, max_attempts smallint, lost smallint, progress smallint, progress_note text,
    worker text, run_at timestamptz, created_at timestamptz, started_at timestamptz,
    finished_at timestamptz, unique_key text, group_key text, reason text, last_error text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    IF p_state = 'failed' THEN
        RETURN QUERY
        SELECT d.id, d.queue, d.kind, 'failed', d.lane, d.priority, d.attempt, d.max_attempts,
            d.lost, NULL::smallint, NULL, NULL, NULL::timestamptz, d.created_at, NULL::timestamptz,
            d.died_at, d.unique_key, d.group_key, d.reason, d.error
        FROM unnest(p_ids) WITH ORDINALITY AS g (id, place)
        JOIN livewell.dead_job d ON d.id = g.id
        ORDER BY g.place;
    ELSIF p_state IN ('succeeded', 'cancelled') THEN
        RETURN QUERY
        SELECT h.id, h.queue, h.kind, h.outcome::text, NULL::smallint, NULL::smallint, h.attempt,
            NULL::smallint, NULL::smallint, NULL::smallint, NULL, NULL, NULL::timestamptz,
            h.created_at, h.started_at, h.finished_at, NULL, NULL, NULL, nullif(h.note, '')
        FROM unnest(p_ids) WITH ORDINALITY AS g (id, place)
        JOIN livewell.job_history h ON h.id = g.id
        ORDER BY g.place;
    ELSE
        RETURN QUERY
        SELECT j.id, j.queue, j.kind, j.state::text, j.lane, j.priority, j.attempt, j.max_attempts,
            j.lost, j.progress, j.progress_note, w.name, j.run_at, j.created_at, j.started_at,
            NULL::timestamptz, j.unique_key, j.group_key, NULL, j.last_error
        FROM unnest(p_ids) WITH ORDINALITY AS g (id, place)
        JOIN livewell.job j ON j.id = g.id
        LEFT JOIN livewell.worker w ON w.id = j.worker
        ORDER BY g.place;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.read_jobs IS
    'Jobs by their ids: live ones, dead letters or finished ones, without what is in them.';
REVOKE ALL ON FUNCTION livewell.read_jobs FROM PUBLIC;
