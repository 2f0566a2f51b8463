-- The state of the queue: what waits where and since when, who works, how fast, what died.
--
-- Called by: system_state. Nothing is counted row by row that can be many: ready, delayed, held and
--            dead come from a sample that is at most ten seconds old (sample_age_seconds says how
--            old, and how says whether it was
-- counted or estimated); running, the heads of the lines, what is overdue (up to 10,000), workers
-- and pace are exact.
-- Index:     job_worker_idx, job_ready_idx, job_delayed_idx, stat_pkey.
-- oldest_ready_seconds is how long the first in line of each lane waits, the longer of the two: a
-- rank contains the age, so nobody waits much longer.
CREATE OR REPLACE FUNCTION livewell.state_queue()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_sample    record;
    v_running   jsonb;
    v_queues    jsonb;
    v_workers   jsonb;
BEGIN
    SELECT * INTO v_sample FROM livewell.find_sample('queue', v_now);
    IF v_sample.wanted THEN
        v_sample.value := livewell.sample_queue();
        v_sample.at := v_now;
        PERFORM livewell.keep_sample('queue', v_now, v_sample.value);
    END IF;

    -- Bounded by the slots of the fleet, and by this.
    SELECT coalesce(jsonb_agg(jsonb_build_array(r.queue, r.worker, r.n)), '[]') INTO v_running
    FROM (
        SELECT x.queue, x.worker, count(*) AS n
        FROM (
            SELECT j.queue, j.worker FROM livewell.job j
            WHERE j.state = 'running' AND j.worker > 0
            LIMIT 100000
        ) x
        GROUP BY x.queue, x.worker
    ) r;

    WITH counted AS (
        SELECT s ->> 0 AS queue, s ->> 1 AS state, (s ->> 2)::bigint AS n
        FROM jsonb_array_elements(v_sample.value -> 'jobs') AS s
    ),
    died AS (
        SELECT s ->> 0 AS queue, sum((s ->> 2)::bigint) AS n,
            jsonb_object_agg(s ->> 1, (s ->> 2)::bigint) AS reasons
        FROM jsonb_array_elements(v_sample.value -> 'dead') AS s
        GROUP BY s ->> 0
    ),
    pace AS (
        SELECT s.queue, sum(s.n) FILTER (WHERE s.outcome = 'succeeded') AS done,
            sum(s.n) FILTER (WHERE s.outcome <> 'succeeded') AS other,
            sum(s.ms)::float8 / greatest(sum(s.n), 1) AS mean_ms
        FROM livewell.stat s
        WHERE s.minute > v_now - interval '5 minutes'
        GROUP BY s.queue
    )
    SELECT coalesce(
        jsonb_agg(
            jsonb_build_object(
                'name', q.name, 'paused_at', q.paused_at, 'limiter', q.limiter,
                'concurrency', q.concurrency,
                'ready', coalesce(
                    (SELECT c.n FROM counted c WHERE c.queue = q.name AND c.state = 'ready'), 0
                ),
                'delayed', coalesce(
                    (SELECT c.n FROM counted c WHERE c.queue = q.name AND c.state = 'delayed'), 0
                ),
                'held', coalesce(
                    (SELECT c.n FROM counted c WHERE c.queue = q.name AND c.state = 'held'), 0
                ),
                'running', (
                    SELECT coalesce(sum((r ->> 2)::bigint), 0)
                    FROM jsonb_array_elements(v_running) AS r
                    WHERE r ->> 0 = q.name
                ),
                'dead', coalesce(d.n, 0), 'dead_reasons', coalesce(d.reasons, '{}'),
                'next_id', h.id,
                'oldest_ready_seconds', extract(epoch FROM v_now - h.since)::float8,
                'background_waits_seconds', extract(epoch FROM v_now - b.run_at)::float8,
                'workers', (
                    SELECT count(*) FROM livewell.worker w
                    WHERE livewell.works_queue(w.queues, q.name) AND w.expires_at > v_now
                ),
                'done_per_minute', coalesce(p.done, 0)::float8 / 5,
                'other_per_minute', coalesce(p.other, 0)::float8 / 5, 'mean_ms', p.mean_ms
            ) ORDER BY q.name
        ),
        '[]'
    )
    INTO v_queues
    FROM (SELECT * FROM livewell.queue o ORDER BY o.name LIMIT 1000) q
    LEFT JOIN died d ON d.queue = q.name
    LEFT JOIN pace p ON p.queue = q.name
    LEFT JOIN LATERAL (
        SELECT f.id, f.run_at FROM livewell.job f
        WHERE f.queue = q.name AND f.lane = 1 AND f.state = 'ready' AND f.lost = 0
        ORDER BY f.rank, f.id LIMIT 1
    ) b ON true
    LEFT JOIN LATERAL (
        SELECT coalesce(f.id, b.id) AS id, least(f.run_at, b.run_at) AS since
        FROM (SELECT 1) AS one
        LEFT JOIN LATERAL (
            SELECT a.id, a.run_at FROM livewell.job a
            WHERE a.queue = q.name AND a.lane = 0 AND a.state = 'ready' AND a.lost = 0
            ORDER BY a.rank, a.id LIMIT 1
        ) f ON true
    ) h ON true;

    SELECT coalesce(
        jsonb_agg(
            jsonb_build_object(
                'id', w.id, 'name', w.name, 'version', w.version, 'queues', w.queues,
                'lacks', w.lacks, 'slots', w.slots, 'started_at', w.started_at,
                'holds', (
                    SELECT coalesce(sum((r ->> 2)::bigint), 0)
                    FROM jsonb_array_elements(v_running) AS r
                    WHERE (r ->> 1)::bigint = w.id
                ),
                'renewed_seconds', extract(epoch FROM v_now - w.renewed_at)::float8,
                'lease_left_seconds', extract(epoch FROM w.expires_at - v_now)::float8
            ) ORDER BY w.id
        ),
        '[]'
    )
    INTO v_workers FROM (SELECT * FROM livewell.worker o ORDER BY o.id LIMIT 1000) w;

    RETURN jsonb_build_object(
        'how', v_sample.value ->> 'how', 'sampled_at', v_sample.at,
        'sample_age_seconds', extract(epoch FROM v_now - v_sample.at)::float8, 'queues', v_queues,
        'workers', v_workers,
        -- Q12: a delayed job past its time by a minute is stuck.
        'overdue_delayed', (
            SELECT count(*)
            FROM (
                SELECT FROM livewell.job j
                WHERE j.state = 'delayed' AND j.run_at < v_now - interval '1 minute'
                LIMIT 10000
            ) o
        ),
        'history_rows', (
            SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint
            FROM pg_catalog.pg_inherits i
            JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'livewell.job_history'::regclass
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_queue IS
    'Queues, workers, pace and dead letters, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_queue FROM PUBLIC;
