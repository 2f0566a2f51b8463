-- Everything known about one job, wherever it is now: live, dead letter or history.
--
-- Called by: show_progress; CLI `jobs show`, clients waiting for a result.
CREATE OR REPLACE FUNCTION livewell.show_job(p_id bigint)
RETURNS TABLE (
    id bigint, queue text, kind text, state text, lane smallint, priority smallint,
    attempt smallint, max_attempts smallint, lost smallint, progress smallint, progress_note text,
    worker text, run_at timestamptz, created_at timestamptz, started_at timestamptz,
    finished_at timestamptz, cancel_requested boolean, unique_key text, group_key text, reason text,
    error text, payload text
)
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT j.id, j.queue, j.kind, j.state::text, j.lane, j.priority, j.attempt, j.max_attempts,
        j.lost, j.progress, j.progress_note, w.name, j.run_at, j.created_at, j.started_at,
        NULL::timestamptz, j.cancel_requested, j.unique_key, j.group_key, NULL::text, j.last_error,
        j.payload::text
    FROM livewell.job j
    LEFT JOIN livewell.worker w ON w.id = j.worker
    WHERE j.id = p_id
    UNION ALL
    SELECT d.id, d.queue, d.kind, 'failed', d.lane, d.priority, d.attempt, d.max_attempts, d.lost,
        NULL, NULL, NULL, NULL, d.created_at, NULL, d.died_at, false, d.unique_key, d.group_key,
        d.reason, d.error, d.payload::text
    FROM livewell.dead_job d
    WHERE d.id = p_id
    UNION ALL
    SELECT h.id, h.queue, h.kind, h.outcome::text, NULL, NULL, h.attempt, NULL, NULL,
        CASE WHEN h.outcome = 'succeeded' THEN 100 END, NULL, NULL, NULL, h.created_at,
        h.started_at, h.finished_at, h.outcome = 'cancelled', NULL, NULL, NULL, nullif(h.note, ''),
        NULL
    FROM livewell.job_history h
    WHERE h.id = p_id
    LIMIT 1
$$;
COMMENT ON FUNCTION livewell.show_job IS
    'One job with its state: delayed, held, ready, running, succeeded, cancelled or failed.';
REVOKE ALL ON FUNCTION livewell.show_job FROM PUBLIC;
