-- Put jobs into the queue, one or many, in the caller's transaction.
--
-- Called by: demand_refresh, end_batches, end_export_batches, enqueue_refreshes, insert_exports;
--            every client, through Task.enqueue and
--            enqueue_many; also plain SQL. Many equal jobs without keys go faster through
--            enqueue_plain.
-- Input:     a JSON array of objects: id (from reserve_job_ids), queue, kind, payload, and
--            optionally unique_key with policy, group_key, call_key, batch_id, lane (0, 1),
--            priority (-100 … 100), delay_seconds or run_at, max_attempts, units (what its call is
--            expected to use), trace.
-- policy:    what happens when a live job has the key already
--                keep      nothing: that job stands for this one
--                raise     that job, if it waits, gets the better lane and rank of the two
--                replace   that job, if it waits, gets this payload; if it runs, this one is held
--                          and runs after it (and replaces whatever was held)
--                again     this one is held and runs after it, with its own payload; if one is held
--                          already, that will do
-- Answer:    a row only for what was NOT simply inserted: merged (into job_id), held (inserted,
--            runs after job_id's key is free), dropped (job_id is held already), known (this very
--            id was accepted before: a retried call), or vanished (the job with the key ended just
--            now: nothing was inserted, ask once more).
-- Index:     job_unique_key_idx and job_unique_held_idx decide (insert_jobs).
-- Steps:     check_jobs, insert_jobs, drop_repeated for a repeated call; answer_jobs if anything
--            was not inserted.
-- A waiting job is changed only if nobody has it locked (SKIP LOCKED): whoever has it is claiming
-- or ending it. ON CONFLICT DO UPDATE would wait, and deadlock with a finish.
CREATE OR REPLACE FUNCTION livewell.enqueue_jobs(p_jobs jsonb, p_again boolean DEFAULT false)
RETURNS TABLE (asked_id bigint, answer text, job_id bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_inserted  bigint[];
BEGIN
    PERFORM livewell.check_jobs(p_jobs);
    v_inserted := livewell.insert_jobs(p_jobs, p_again, v_now);
    IF p_again THEN
        v_inserted := livewell.drop_repeated(v_inserted);
    END IF;
    IF cardinality(v_inserted) <> jsonb_array_length(p_jobs) THEN
        RETURN QUERY
        SELECT a.asked_id, a.answer, a.job_id
        FROM livewell.answer_jobs(p_jobs, v_inserted, p_again, v_now) AS a;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.enqueue_jobs IS
    'Inserts jobs; answers only for those that were merged into a live job with the same key, '
    'held behind it, or accepted before.';
REVOKE ALL ON FUNCTION livewell.enqueue_jobs FROM PUBLIC;
