-- End batches of which nothing remains, and enqueue their follow-up.
--
-- Called by: job_ended and seal_batch; the batch rows are locked by the caller, in the order of their ids.
-- The follow-up has an id reserved when the batch was made, so it can only be enqueued once.
CREATE OR REPLACE FUNCTION livewell.end_batches(p_ids bigint[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    WITH ended AS (
        UPDATE livewell.batch b SET ended_at = v_now
        WHERE b.id = ANY (p_ids) AND b.remaining = 0 AND b.ended_at IS NULL
          -- A follow-up that wants every job to have succeeded waits: a dead letter may be redriven.
          AND (b.follow IS NULL OR b.follow_when = 'done' OR b.failed + b.cancelled = 0)
        RETURNING b.follow_id, b.follow
    )
    INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, priority, lane, queue, kind, payload)
    SELECT e.follow_id, (extract(epoch FROM v_now) * 1000)::bigint - coalesce((e.follow ->> 'priority')::integer, 0) * 60000, v_now, v_now, 'ready',
           coalesce((e.follow ->> 'max_attempts')::smallint, q.attempts), coalesce((e.follow ->> 'priority')::smallint, 0), coalesce((e.follow ->> 'lane')::smallint, 1),
           q.name, e.follow ->> 'kind', e.follow -> 'payload'
    FROM ended e JOIN livewell.queue q ON q.name = e.follow ->> 'queue'
    ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION livewell.end_batches IS 'Marks finished batches as ended and enqueues their follow-up jobs.';
REVOKE ALL ON FUNCTION livewell.end_batches FROM PUBLIC;
