-- Say that nothing more will be added to a batch; from now on it knows how many of its jobs remain.
--
-- Called by: clients.
-- FOR UPDATE waits for every transaction that is adding to it (they hold FOR KEY SHARE), and only a
-- new statement then sees all its jobs.
CREATE OR REPLACE FUNCTION livewell.seal_batch(p_id bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now timestamptz;
BEGIN
    PERFORM FROM livewell.batch b WHERE b.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.batch b
    SET sealed_at = v_now, remaining = (SELECT count(*) FROM livewell.job j WHERE j.batch_id = p_id)
    WHERE b.id = p_id AND b.sealed_at IS NULL;
    PERFORM livewell.end_batches(ARRAY[p_id]);
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.seal_batch IS
    'Closes a batch to further jobs; false when there is none with that id.';
REVOKE ALL ON FUNCTION livewell.seal_batch FROM PUBLIC;
