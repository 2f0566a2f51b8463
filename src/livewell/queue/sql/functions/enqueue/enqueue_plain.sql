-- Put many jobs of one kind into the queue that differ only in their payload and need no key: one
-- statement over an array of ids and a JSON array of payloads, in the same order.
--
-- Called by: enqueue_many, for jobs without unique key, group, call key and batch.
-- A retried call (p_again) finds its ids taken; what has ended meanwhile is looked for only then.
-- The first time ids are new, and ON CONFLICT would cost 30 B of WAL per job for nothing.
-- What is the same for all is computed once: a rank per row took 0.8 µs.
CREATE OR REPLACE FUNCTION livewell.enqueue_plain(
    p_queue text,
    p_kind text,
    p_ids bigint[],
    p_payloads jsonb,
    p_lane integer,
    p_priority integer,
    p_delay_seconds float8,
    p_run_at timestamptz,
    p_max_attempts integer,
    p_again boolean
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_attempts  smallint;
    v_due       timestamptz := coalesce(
        p_run_at, v_now + p_delay_seconds * interval '1 second', v_now
    );
    v_state     livewell.job_state := CASE WHEN v_due > v_now THEN 'delayed' ELSE 'ready' END;
    v_rank      bigint :=
        (extract(epoch FROM greatest(v_due, v_now)) * 1000)::bigint - p_priority * 60000;
BEGIN
    SELECT coalesce(p_max_attempts, q.attempts) INTO v_attempts FROM livewell.queue q
    WHERE q.name = p_queue;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'queue "%" is not declared', p_queue USING ERRCODE = 'LW002';
    END IF;
    IF p_lane NOT IN (0, 1)
        OR p_priority NOT BETWEEN -100 AND 100
        OR v_attempts NOT BETWEEN 1 AND 100
        OR octet_length(p_kind) NOT BETWEEN 1 AND 200
    THEN
        PERFORM livewell.refuse_job(p_lane, p_priority, v_attempts, NULL);
    END IF;
    IF NOT p_again THEN
        -- Text is at most six times the binary form, so small payloads are never turned into text
        -- just to be measured.
        INSERT INTO livewell.job (
            id, rank, run_at, created_at, state, max_attempts, priority, lane, queue, kind, payload
        )
        SELECT
            CASE
                WHEN pg_column_size(g.payload) > 40000 AND octet_length(g.payload::text) > 262144
                    THEN livewell.refuse_job(p_lane, p_priority, v_attempts, g.payload)
                ELSE g.id
            END,
            v_rank, v_due, v_now, v_state, v_attempts, p_priority, p_lane, p_queue, p_kind,
            g.payload
        FROM ROWS FROM (unnest(p_ids), jsonb_array_elements(p_payloads)) AS g (id, payload);
        RETURN;
    END IF;
    INSERT INTO livewell.job (
        id, rank, run_at, created_at, state, max_attempts, priority, lane, queue, kind, payload
    )
    SELECT
        CASE
            WHEN octet_length(g.payload::text) > 262144
                THEN livewell.refuse_job(p_lane, p_priority, v_attempts, g.payload)
            ELSE g.id
        END,
        v_rank, v_due, v_now, v_state, v_attempts, p_priority, p_lane, p_queue, p_kind, g.payload
    FROM ROWS FROM (unnest(p_ids), jsonb_array_elements(p_payloads)) AS g (id, payload)
    WHERE NOT (
        EXISTS (SELECT FROM livewell.job_history h WHERE h.id = g.id)
        OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = g.id)
    )
    ON CONFLICT (id) DO NOTHING;
    -- The first call may have been under way still when our insert began, and its job may have
    -- ended since: only a new snapshot knows (see enqueue_jobs).
    DELETE FROM livewell.job j
    WHERE j.id = ANY (p_ids)
        AND j.state <> 'running'
        AND (
            EXISTS (SELECT FROM livewell.job_history h WHERE h.id = j.id)
            OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = j.id)
        );
END
$$;
COMMENT ON FUNCTION livewell.enqueue_plain IS
    'Inserts many jobs that differ only in id and payload; ids that were accepted before are left '
    'alone.';
REVOKE ALL ON FUNCTION livewell.enqueue_plain FROM PUBLIC;
