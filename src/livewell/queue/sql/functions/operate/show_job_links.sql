-- What else belongs to one job: its batch, its trace, who held it last, by when it must end.
--
-- Called by: the page of a job, beside show_job: the columns of that one cannot change while
--            workers of the version before call it.
-- Index:     primary keys, job_history_id_idx.
-- held_by:   key or group, while it is held. worker_id: the incarnation that has it or ended it.
CREATE OR REPLACE FUNCTION livewell.show_job_links(p_id bigint)
RETURNS TABLE (
    batch_id bigint, trace text, held_by text, call_key text, credential text, worker_id bigint,
    deadline_at timestamptz, lease_left_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT j.batch_id, j.trace,
        CASE j.held_by
            WHEN 'k' THEN 'key'
            WHEN 'g' THEN 'group'
        END,
        j.call_key, nullif(j.credential, ''), j.worker, j.deadline_at,
        extract(epoch FROM w.expires_at - v_now)::float8
    FROM livewell.job j
    LEFT JOIN livewell.worker w ON w.id = j.worker
    WHERE j.id = p_id
    UNION ALL
    SELECT d.batch_id, d.trace, NULL, d.call_key, NULL, NULL, NULL, NULL FROM livewell.dead_job d
    WHERE d.id = p_id
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL, h.worker, NULL, NULL FROM livewell.job_history h
    WHERE h.id = p_id
    LIMIT 1;
END
$$;
COMMENT ON FUNCTION livewell.show_job_links IS
    'What one job belongs to: batch, trace, worker, deadline.';
REVOKE ALL ON FUNCTION livewell.show_job_links FROM PUBLIC;
