-- The end of a graceful stop: hand back everything still held and give up the lease, at once.
--
-- Called by: worker, last thing. Locks its own worker row FOR UPDATE first, so no claim of ours can
--            slip in behind.
CREATE OR REPLACE FUNCTION livewell.release_worker(p_worker bigint)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_ids   bigint[];
    v_n     integer;
BEGIN
    DELETE FROM livewell.worker w WHERE w.id = p_worker;
    v_ids := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.state = 'running' AND j.worker = p_worker
        ORDER BY j.id FOR UPDATE
    );
    v_n := cardinality(v_ids);
    IF v_n > 0 THEN
        PERFORM livewell.settle_jobs(
            v_ids, array_fill('released'::text, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]),
            array_fill(NULL::text, ARRAY[v_n]), array_fill(NULL::float8, ARRAY[v_n])
        );
    END IF;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.release_worker IS
    'Ends a worker incarnation and returns its jobs to ready; answers how many.';
REVOKE ALL ON FUNCTION livewell.release_worker FROM PUBLIC;
