-- End batches of which nothing remains, and enqueue their follow-up.
--
-- Called by: job_ended and seal_batch; the batch rows are locked by the caller, in the order of
--            their ids.
-- The follow-up is a job as enqueue_jobs takes it, with an id reserved when the batch was made: it
-- can only be enqueued once.
CREATE OR REPLACE FUNCTION livewell.end_batches(p_ids bigint[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_follow    jsonb;
BEGIN
    WITH ended AS (
        UPDATE livewell.batch b
        SET ended_at = v_now
        WHERE b.id = ANY (p_ids)
            AND b.remaining = 0
            AND b.ended_at IS NULL
            -- A follow-up that wants every job to have succeeded waits: a dead letter may be
            -- redriven.
            AND (b.follow IS NULL OR b.follow_when = 'done' OR b.failed + b.cancelled = 0)
        RETURNING b.follow_id, b.follow
    )
    SELECT jsonb_agg(e.follow || jsonb_build_object('id', e.follow_id)) INTO v_follow FROM ended e
    WHERE e.follow IS NOT NULL;
    IF v_follow IS NOT NULL THEN
        PERFORM livewell.enqueue_jobs(v_follow);
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.end_batches IS
    'Marks finished batches as ended and enqueues their follow-up jobs.';
REVOKE ALL ON FUNCTION livewell.end_batches FROM PUBLIC;
