-- What went wrong in each attempt of a job, newest first, twenty at most.
--
-- Called by: admin.job(), beside show_job.
-- Index:     job_failure_pkey.
CREATE OR REPLACE FUNCTION livewell.show_failures(p_id bigint)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT coalesce(
        jsonb_agg(
            jsonb_build_object(
                'attempt', f.attempt, 'at', f.failed_at, 'outcome', f.outcome, 'error', f.error,
                'worker', f.worker
            )
            ORDER BY f.fence DESC
        ),
        '[]'
    )
    FROM livewell.job_failure f
    WHERE f.job_id = p_id
$$;
COMMENT ON FUNCTION livewell.show_failures IS
    'What went wrong in each attempt of a job that was kept, newest first.';
REVOKE ALL ON FUNCTION livewell.show_failures FROM PUBLIC;
