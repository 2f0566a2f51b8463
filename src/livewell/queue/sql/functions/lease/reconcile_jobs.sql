-- Hand back jobs that are ours in the database but that we do not know of: a claim whose answer
-- never arrived.
--
-- Called by: keeper, every fifth heartbeat and after a claim with an unknown outcome.
-- Index:     job_worker_idx.
-- p_mark: a fence seen before our oldest claim in flight was sent; what that claim may yet bring
--         has higher fences and is left alone.
-- They were never started, so neither an attempt nor a loss is counted, and nothing was used; a
-- permit that came with them is burnt.
CREATE OR REPLACE FUNCTION livewell.reconcile_jobs(p_worker bigint, p_known bigint[], p_mark bigint)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_ids   bigint[];
    v_n     integer;
BEGIN
    v_ids := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.state = 'running'
            AND j.worker = p_worker
            AND j.fence <= p_mark
            AND j.fence <> ALL (p_known)
        ORDER BY j.id LIMIT 10000 FOR UPDATE SKIP LOCKED
    );
    v_n := cardinality(v_ids);
    IF v_n > 0 THEN
        PERFORM livewell.settle_jobs(
            v_ids, array_fill('released'::text, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]),
            array_fill(NULL::text, ARRAY[v_n]), array_fill(NULL::float8, ARRAY[v_n]),
            array_fill(0::bigint, ARRAY[v_n])
        );
    END IF;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.reconcile_jobs IS
    'Returns to ready the jobs a worker holds without knowing it; answers how many.';
REVOKE ALL ON FUNCTION livewell.reconcile_jobs FROM PUBLIC;
