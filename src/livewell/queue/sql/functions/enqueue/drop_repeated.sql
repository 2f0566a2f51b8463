-- Take out again what a repeated call has inserted a second time; answers what stays.
--
-- Called by: enqueue_jobs, after the insert of a call that repeats one whose commit is unknown.
-- Index:     the primary keys of history and of the dead letters.
-- The first call's job may have ended while our insert waited for somebody else's key: the snapshot
-- of the insert is older than its end, the one in here is not.
CREATE OR REPLACE FUNCTION livewell.drop_repeated(p_inserted bigint[])
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_twice     bigint[];
BEGIN
    v_twice := ARRAY(
        SELECT i FROM unnest(p_inserted) AS i
        WHERE EXISTS (SELECT FROM livewell.job_history h WHERE h.id = i)
            OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = i)
    );
    IF cardinality(v_twice) = 0 THEN
        RETURN p_inserted;
    END IF;
    -- its batch has counted it
    UPDATE livewell.job j
    SET batch_id = NULL
    WHERE j.id = ANY (v_twice) AND j.batch_id IS NOT NULL;
    DELETE FROM livewell.job j WHERE j.id = ANY (v_twice);
    RETURN ARRAY(SELECT i FROM unnest(p_inserted) AS i WHERE i <> ALL (v_twice));
END
$$;
COMMENT ON FUNCTION livewell.drop_repeated IS
    'Deletes jobs that were accepted before and have ended; answers the others.';
REVOKE ALL ON FUNCTION livewell.drop_repeated FROM PUBLIC;
