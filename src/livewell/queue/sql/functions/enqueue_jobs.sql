-- Put jobs into the queue, one or many, in the caller's transaction.
--
-- Called by: every client, through Task.enqueue and enqueue_many; also plain SQL.
-- Input:     a JSON array of objects: id (from reserve_job_ids), queue, kind, payload, and optionally unique_key, group_key, call_key, lane (0, 1),
--            priority (-100 … 100), delay_seconds or run_at, max_attempts, trace.
-- Answer:    a row only for what was NOT inserted: merged (another live job has the key), known (this very id was accepted before: a retried call), or vanished
--            (the job with the key ended just now: nothing was inserted, ask once more).
-- Index:     job_unique_key_idx decides `keep`; two callers with overlapping keys insert in key order, so they wait for each other and never deadlock.
CREATE OR REPLACE FUNCTION livewell.enqueue_jobs(p_jobs jsonb, p_again boolean DEFAULT false)
RETURNS TABLE (asked_id bigint, answer text, job_id bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_missing   text;
    v_asked     integer := jsonb_array_length(p_jobs);
    v_inserted  bigint[];
BEGIN
    SELECT j.queue INTO v_missing
    FROM (SELECT DISTINCT e ->> 'queue' AS queue FROM jsonb_array_elements(p_jobs) e) j
    WHERE NOT EXISTS (SELECT FROM livewell.queue q WHERE q.name = j.queue)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'queue "%" is not declared', coalesce(v_missing, '(none)') USING ERRCODE = 'LW002';
    END IF;

    WITH given AS (
        SELECT g.*, q.attempts,
               coalesce(g.run_at, v_now + g.delay_seconds * interval '1 second', v_now) AS due_at
        FROM jsonb_to_recordset(p_jobs) AS g (
            id bigint, queue text, kind text, payload jsonb, unique_key text, group_key text, call_key text, lane smallint, priority smallint,
            delay_seconds float8, run_at timestamptz, max_attempts smallint, trace text)
        JOIN livewell.queue q ON q.name = g.queue
        -- A call repeated after an unknown commit: what was accepted then may be finished or dead by now.
        WHERE NOT p_again OR NOT (EXISTS (SELECT FROM livewell.job_history h WHERE h.id = g.id) OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = g.id))
        ORDER BY g.queue, g.unique_key, g.id
    ), born AS (
        INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, priority, lane, queue, kind, unique_key, group_key, call_key, payload, trace)
        SELECT id, (extract(epoch FROM greatest(due_at, v_now)) * 1000)::bigint - coalesce(priority, 0) * 60000, due_at, v_now,
               CASE WHEN due_at > v_now THEN 'delayed' ELSE 'ready' END::livewell.job_state,
               coalesce(max_attempts, attempts), coalesce(priority, 0), coalesce(lane, 1), queue, kind, unique_key, group_key, call_key, payload, trace
        FROM given
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT array_agg(id) INTO v_inserted FROM born;

    IF p_again THEN
        -- The first call's job may have ended while our insert waited for somebody else's key: our snapshot is older than its end, a new one is not.
        WITH twice AS (
            DELETE FROM livewell.job j
            WHERE j.id = ANY (v_inserted)
              AND (EXISTS (SELECT FROM livewell.job_history h WHERE h.id = j.id) OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = j.id))
            RETURNING j.id
        )
        SELECT array_agg(i) INTO v_inserted FROM unnest(v_inserted) AS i WHERE i NOT IN (SELECT t.id FROM twice t);
    END IF;

    IF cardinality(v_inserted) = v_asked THEN
        RETURN;
    END IF;
    -- A new statement, so a fresh snapshot: it sees the rows our insert collided with.
    RETURN QUERY
    SELECT g.id,
           CASE WHEN own.id IS NOT NULL OR past.id IS NOT NULL THEN 'known' WHEN other.id IS NOT NULL THEN 'merged' ELSE 'vanished' END,
           coalesce(own.id, past.id, other.id, g.id)
    FROM jsonb_to_recordset(p_jobs) AS g (id bigint, queue text, unique_key text)
    -- LATERAL with LIMIT: one index probe per job asked for. As plain joins these read the whole live table up to some 10,000 rows (jsonb is taken for 100 rows).
    LEFT JOIN LATERAL (SELECT j.id FROM livewell.job j WHERE j.id = g.id LIMIT 1) own ON true
    LEFT JOIN LATERAL (
        SELECT h.id FROM livewell.job_history h WHERE p_again AND h.id = g.id
        UNION ALL
        SELECT d.id FROM livewell.dead_job d WHERE p_again AND d.id = g.id
        LIMIT 1) past ON true
    LEFT JOIN LATERAL (
        SELECT j.id FROM livewell.job j WHERE j.queue = g.queue AND j.unique_key = g.unique_key AND j.held_by IS DISTINCT FROM 'k' LIMIT 1) other ON true
    WHERE g.id <> ALL (coalesce(v_inserted, '{}'));
END
$$;
COMMENT ON FUNCTION livewell.enqueue_jobs IS 'Inserts jobs; answers only for those that were merged into a live job with the same key or were accepted before.';
REVOKE ALL ON FUNCTION livewell.enqueue_jobs FROM PUBLIC;
