-- Put many jobs of one kind into the queue, each with its own unique key, as arrays in the same
-- order: those whose key is free are inserted, the others are answered.
--
-- Called by: whoever makes hundreds of jobs in SQL (enqueue_refreshes). What is answered goes to
--            enqueue_jobs with its policy; as a rule that is nothing. Written to JSON and read from
--            it again, 500 jobs took 20 ms instead of 11.
-- The queues must be declared. Nothing is born held: what its group has no room for is held by the
-- claim that meets it.
-- Index:     job_unique_key_idx decides; in key order, as in insert_jobs.
CREATE OR REPLACE FUNCTION livewell.enqueue_keyed(
    p_kind text,
    p_attempts integer,
    p_ids bigint[],
    p_queues text[],
    p_lanes integer[],
    p_keys text[],
    p_groups text[],
    p_calls text[],
    p_units bigint[],
    p_payloads jsonb[]
)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_rank      bigint := (extract(epoch FROM v_now) * 1000)::bigint;
    v_inserted  bigint[];
BEGIN
    WITH born AS (
        INSERT INTO livewell.job (
            id, rank, run_at, created_at, state, max_attempts, priority, lane, queue, kind,
            unique_key, group_key, call_key, units, payload
        )
        SELECT
            CASE
                WHEN g.lane NOT IN (0, 1)
                    OR p_attempts NOT BETWEEN 1 AND 100
                    OR octet_length(p_kind) NOT BETWEEN 1 AND 200
                    OR octet_length(g.key) NOT BETWEEN 1 AND 512
                    OR octet_length(g.group_key) NOT BETWEEN 1 AND 512
                    OR octet_length(g.call_key) NOT BETWEEN 1 AND 512
                    OR pg_column_size(g.payload) > 40000 AND octet_length(g.payload::text) > 262144
                    THEN livewell.refuse_job(g.lane, 0, p_attempts, g.payload)
                ELSE g.id
            END,
            v_rank, v_now, v_now, 'ready', p_attempts, 0, g.lane, g.queue, p_kind, g.key,
            g.group_key, g.call_key, g.units, g.payload
        FROM unnest(
            p_ids, p_queues, p_lanes, p_keys, p_groups, p_calls, p_units, p_payloads
        ) AS g (id, queue, lane, key, group_key, call_key, units, payload)
        ORDER BY g.queue, g.key, g.id
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT array_agg(b.id) INTO v_inserted FROM born b;
    IF cardinality(v_inserted) = cardinality(p_ids) THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT i FROM unnest(p_ids) AS i WHERE i <> ALL (coalesce(v_inserted, '{}')));
END
$$;
COMMENT ON FUNCTION livewell.enqueue_keyed IS
    'Inserts many jobs with unique keys; answers the ids of those whose key is taken.';
REVOKE ALL ON FUNCTION livewell.enqueue_keyed FROM PUBLIC;
