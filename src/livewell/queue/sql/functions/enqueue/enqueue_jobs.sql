-- Put jobs into the queue, one or many, in the caller's transaction.
--
-- Called by: every client, through Task.enqueue and enqueue_many; also plain SQL. Many equal jobs
--            without keys go faster through enqueue_plain.
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
-- Index:     job_unique_key_idx and job_unique_held_idx decide; callers with overlapping keys
--            insert in key order, so they wait for each other and never deadlock.
-- Steps:     check_jobs, the insert, drop_repeated for a repeated call; answer_jobs if anything was
--            not inserted.
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

    WITH given AS (
        SELECT g.*, q.attempts, least(q.group_limit, l.per_key) AS group_limit,
            coalesce(g.run_at, v_now + g.delay_seconds * interval '1 second', v_now) AS due_at
        FROM jsonb_to_recordset(p_jobs) AS g (
            id bigint, queue pg_catalog.text, kind pg_catalog.text, payload pg_catalog.jsonb,
            unique_key pg_catalog.text, group_key pg_catalog.text, call_key pg_catalog.text,
            lane smallint, priority smallint, delay_seconds pg_catalog.float8,
            run_at pg_catalog.timestamptz, max_attempts smallint, trace pg_catalog.text,
            batch_id bigint, units bigint
        )
        JOIN livewell.queue q ON q.name = g.queue
        LEFT JOIN livewell.limiter l ON l.name = q.limiter
        -- A call repeated after an unknown commit: what was accepted then may be finished or dead
        -- by now.
        WHERE NOT p_again
            OR NOT (
                EXISTS (SELECT FROM livewell.job_history h WHERE h.id = g.id)
                OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = g.id)
            )
    ),
    placed AS (
        -- Beyond what its group may run it is born held: 200,000 ready jobs of a full group would
        -- be in every claim's way. An estimate is enough here, the claim counts.
        SELECT g.*,
            g.group_limit IS NOT NULL
                AND g.group_key IS NOT NULL
                AND g.due_at <= v_now
                AND row_number() OVER (
                    PARTITION BY g.queue, g.group_key, g.due_at <= v_now
                    ORDER BY coalesce(g.lane, 1), coalesce(g.priority, 0) DESC, g.id
                ) + coalesce(a.active, 0) > g.group_limit AS full_group
        FROM given g
        LEFT JOIN (
            SELECT d.queue, d.group_key,
                (
                    SELECT count(*)
                    FROM (
                        SELECT FROM livewell.job j
                        WHERE j.queue = d.queue
                            AND j.group_key = d.group_key
                            AND j.state IN ('ready', 'running')
                        LIMIT d.group_limit
                    ) x
                ) AS active
            FROM (
                SELECT DISTINCT queue, group_key, group_limit FROM given
                WHERE group_limit IS NOT NULL AND group_key IS NOT NULL
            ) d
        ) a ON a.queue = g.queue AND a.group_key = g.group_key
        ORDER BY g.queue, g.unique_key, g.id
    ),
    born AS (
        INSERT INTO livewell.job (
            id, rank, run_at, created_at, state, held_by, max_attempts, priority, lane, queue, kind,
            unique_key, group_key, call_key, batch_id, units, payload, trace
        )
        SELECT
            CASE
                WHEN lane NOT IN (0, 1)
                    OR priority NOT BETWEEN -100 AND 100
                    OR coalesce(max_attempts, attempts) NOT BETWEEN 1 AND 100
                    OR octet_length(kind) NOT BETWEEN 1 AND 200
                    OR octet_length(unique_key) NOT BETWEEN 1 AND 512
                    OR octet_length(group_key) NOT BETWEEN 1 AND 512
                    OR octet_length(call_key) NOT BETWEEN 1 AND 512
                    OR pg_column_size(payload) > 40000
                        AND octet_length(payload::pg_catalog.text) > 262144
                    THEN livewell.refuse_job(
                        lane, priority, coalesce(max_attempts, attempts), payload
                    )
                ELSE id
            END,
            (extract(epoch FROM greatest(due_at, v_now)) * 1000)::bigint
                - coalesce(priority, 0) * 60000,
            due_at, v_now,
            CASE
                WHEN due_at > v_now THEN 'delayed'
                WHEN full_group THEN 'held'
                ELSE 'ready'
            END::livewell.job_state,
            CASE WHEN full_group THEN 'g'::pg_catalog."char" END, coalesce(max_attempts, attempts),
            coalesce(priority, 0), coalesce(lane, 1), queue, kind, unique_key, group_key, call_key,
            batch_id, units, payload, trace
        FROM placed
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT coalesce(array_agg(id), '{}') INTO v_inserted FROM born;

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
