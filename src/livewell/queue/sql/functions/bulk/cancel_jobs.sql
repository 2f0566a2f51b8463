-- Cancel jobs that the caller has locked: waiting ones at once, running ones through their worker.
--
-- Called by: act_on_page. The rules are those of cancel_job.
-- Why not cancel_job for each: batches are locked by id within one delete; one delete for each job
-- would lock them in the order of the jobs, and meet finish_jobs in a deadlock.
CREATE OR REPLACE FUNCTION livewell.cancel_jobs(p_ids bigint[])
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_waiting   bigint[];
    v_asked     bigint;
BEGIN
    UPDATE livewell.job j SET cancel_requested = true
    WHERE j.id = ANY (p_ids) AND j.state = 'running';
    GET DIAGNOSTICS v_asked = ROW_COUNT;
    v_waiting := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.id = ANY (p_ids) AND j.state <> 'running'
        ORDER BY j.id
    );
    IF cardinality(v_waiting) > 0 THEN
        PERFORM livewell.settle_jobs(
            v_waiting, array_fill('cancelled'::text, ARRAY[cardinality(v_waiting)]),
            array_fill(NULL::text, ARRAY[cardinality(v_waiting)]),
            array_fill('cancelled while it waited'::text, ARRAY[cardinality(v_waiting)]),
            array_fill(NULL::float8, ARRAY[cardinality(v_waiting)])
        );
    END IF;
    RETURN v_asked + cardinality(v_waiting);
END
$$;
COMMENT ON FUNCTION livewell.cancel_jobs IS
    'Cancels locked jobs, as cancel_job does one; answers how many.';
REVOKE ALL ON FUNCTION livewell.cancel_jobs FROM PUBLIC;
