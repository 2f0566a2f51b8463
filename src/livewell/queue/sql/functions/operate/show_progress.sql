-- How far some jobs are, wherever each is now: live, dead letter or history. Without payloads.
--
-- Called by: queue/progress.py, twice a second for all jobs that somebody follows.
-- Index:     primary keys of job and dead_job; job_history by id, partition by partition, for those
--            that have just ended.
CREATE OR REPLACE FUNCTION livewell.show_progress(p_ids bigint[])
RETURNS TABLE (
    id bigint, queue text, kind text, state text, attempt smallint, max_attempts smallint,
    progress smallint, progress_note text, reason text, created_at timestamptz,
    started_at timestamptz, finished_at timestamptz
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    IF coalesce(cardinality(p_ids), 0) > 1000 THEN
        RAISE EXCEPTION '% jobs: at most 1000 in one call', cardinality(p_ids)
            USING ERRCODE = 'LW003';
    END IF;
    RETURN QUERY
    SELECT s.id, s.queue, s.kind, s.state, s.attempt, s.max_attempts, s.progress, s.progress_note,
        s.reason, s.created_at, s.started_at, s.finished_at
    FROM unnest(p_ids) AS g (id)
    CROSS JOIN LATERAL livewell.show_job(g.id) AS s;
END
$$;
COMMENT ON FUNCTION livewell.show_progress IS
    'State and progress of some jobs, without what is in them.';
REVOKE ALL ON FUNCTION livewell.show_progress FROM PUBLIC;
