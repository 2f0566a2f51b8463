-- Keep what went wrong in these attempts; of each job the last twenty.
--
-- Called by: settle_jobs, which holds the jobs' locks, when any of them has an error.
-- Index:     job_pkey, job_failure_pkey.
-- worker:    of a lost job the incarnation that was buried; its own row is gone by now.
CREATE OR REPLACE FUNCTION livewell.note_failures(
    p_ids bigint[], p_outcomes text[], p_errors text[], p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
BEGIN
    INSERT INTO livewell.job_failure AS f (
        job_id, fence, failed_at, attempt, outcome, error, worker
    )
    SELECT j.id, j.fence, p_now, j.attempt, g.outcome, left(g.error, 1000), j.worker
    FROM unnest(p_ids, p_outcomes, p_errors) AS g (id, outcome, error)
    CROSS JOIN LATERAL (SELECT b.* FROM livewell.job b WHERE b.id = g.id OFFSET 0) j
    WHERE g.outcome IN ('retry', 'lost', 'refused')
        AND g.error IS NOT NULL
        AND j.fence IS NOT NULL
    ON CONFLICT (job_id, fence) DO NOTHING;
    DELETE FROM livewell.job_failure f
    USING unnest(p_ids) AS g (id)
    CROSS JOIN LATERAL (
        SELECT o.fence FROM livewell.job_failure o
        WHERE o.job_id = g.id
        ORDER BY o.fence DESC OFFSET 20 LIMIT 1
    ) old
    WHERE f.job_id = g.id AND f.fence <= old.fence;
END
$$;
COMMENT ON FUNCTION livewell.note_failures IS
    'Writes down what went wrong in these attempts; the last twenty of each job stay.';
REVOKE ALL ON FUNCTION livewell.note_failures FROM PUBLIC;
