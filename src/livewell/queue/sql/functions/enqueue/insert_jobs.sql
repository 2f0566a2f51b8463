-- Insert the jobs whose key is free: ready, delayed, or held if their group is full. Answers the
-- ids of those that were inserted.
--
-- Called by: enqueue_jobs, with the JSON array that it explains, after check_jobs.
-- Index:     job_unique_key_idx and job_unique_held_idx decide; callers with overlapping keys
--            insert in key order, so they wait for each other and never deadlock. job_group_idx for
--            what a group has.
CREATE OR REPLACE FUNCTION livewell.insert_jobs(p_jobs jsonb, p_again boolean, p_now timestamptz)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_inserted  bigint[];
BEGIN
    WITH given AS (
        SELECT g.*, q.attempts, least(q.group_limit, l.per_key) AS group_limit,
            coalesce(g.run_at, p_now + g.delay_seconds * interval '1 second', p_now) AS due_at
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
                AND g.due_at <= p_now
                AND row_number() OVER (
                    PARTITION BY g.queue, g.group_key, g.due_at <= p_now
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
            (extract(epoch FROM greatest(due_at, p_now)) * 1000)::bigint
                - coalesce(priority, 0) * 60000,
            due_at, p_now,
            CASE
                WHEN due_at > p_now THEN 'delayed'
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
    RETURN v_inserted;
END
$$;
COMMENT ON FUNCTION livewell.insert_jobs IS
    'Inserts jobs whose unique key is free; answers the ids of those that were inserted.';
REVOKE ALL ON FUNCTION livewell.insert_jobs FROM PUBLIC;
