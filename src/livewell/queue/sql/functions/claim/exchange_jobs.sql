-- Finish what is done and claim what comes next, in one call and one commit.
--
-- Called by: worker/claim_ahead.py, for every batch of results.
-- Why two statements inside: in one statement the slots that the finish frees would be invisible to
-- the claim.
-- Why the lease is locked before anything is finished: release_worker takes lease, then jobs; the
-- other way round the two deadlock.
-- Answer:    a row `fenced` with id and fence for each result that was not ours any more, then what
--            claim_jobs answers. p_limit 0 claims nothing.
CREATE OR REPLACE FUNCTION livewell.exchange_jobs(
    p_worker bigint,
    p_ids bigint[],
    p_fences bigint[],
    p_others jsonb,
    p_queues text[],
    p_limit integer,
    p_empty boolean,
    p_mark_ranks bigint[] DEFAULT NULL,
    p_mark_ids bigint[] DEFAULT NULL
)
RETURNS SETOF livewell.claimed_job
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    IF p_limit > 0 AND (cardinality(p_ids) > 0 OR p_others IS NOT NULL) THEN
        PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;
    END IF;
    IF cardinality(p_ids) > 0 OR p_others IS NOT NULL THEN
        RETURN QUERY
        SELECT 'fenced'::text, f.job_id, f.job_fence, NULL::smallint, NULL::smallint,
            NULL::smallint, NULL::smallint, NULL::bigint, NULL::text, NULL::text, NULL::text,
            NULL::text, NULL::text, NULL::text
        FROM livewell.finish_jobs(p_worker, p_ids, p_fences, p_others) f;
    END IF;
    IF p_limit > 0 THEN
        RETURN QUERY
        SELECT c.*
        FROM livewell.claim_jobs(p_worker, p_queues, p_limit, p_empty, p_mark_ranks, p_mark_ids) c;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.exchange_jobs IS
    'finish_jobs and claim_jobs in one round trip and one transaction.';
REVOKE ALL ON FUNCTION livewell.exchange_jobs FROM PUBLIC;
