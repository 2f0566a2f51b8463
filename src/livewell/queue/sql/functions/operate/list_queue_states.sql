-- Every queue, 1,000 at most: what waits in it and since when, what runs, the pace, what died.
--
-- Called by: state_queue, with its planner settings. p_sample: as sample_queue answers; p_running:
--            [[queue, worker, jobs]].
-- Index:     job_ready_idx, stat_pkey.
-- oldest_ready_seconds is how long the first in line of each lane waits, the longer of the two: a
-- rank contains the age, so nobody waits much longer.
CREATE OR REPLACE FUNCTION livewell.list_queue_states(
    p_sample jsonb, p_running jsonb, p_now timestamptz
)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_queues    jsonb;
BEGIN
    WITH counted AS (
        SELECT s ->> 0 AS queue, s ->> 1 AS state, (s ->> 2)::bigint AS n
        FROM jsonb_array_elements(p_sample -> 'jobs') AS s
    ),
    died AS (
        SELECT s ->> 0 AS queue, sum((s ->> 2)::bigint) AS n,
            jsonb_object_agg(s ->> 1, (s ->> 2)::bigint) AS reasons
        FROM jsonb_array_elements(p_sample -> 'dead') AS s
        GROUP BY s ->> 0
    ),
    pace AS (
        SELECT s.queue, sum(s.n) FILTER (WHERE s.outcome = 'succeeded') AS done,
            sum(s.n) FILTER (WHERE s.outcome <> 'succeeded') AS other,
            sum(s.ms)::float8 / greatest(sum(s.n), 1) AS mean_ms
        FROM livewell.stat s
        WHERE s.minute > p_now - interval '5 minutes'
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
                    FROM jsonb_array_elements(p_running) AS r
                    WHERE r ->> 0 = q.name
                ),
                'dead', coalesce(d.n, 0), 'dead_reasons', coalesce(d.reasons, '{}'),
                'next_id', h.id,
                'oldest_ready_seconds', extract(epoch FROM p_now - h.since)::float8,
                'background_waits_seconds', extract(epoch FROM p_now - b.run_at)::float8,
                'workers', (
                    SELECT count(*) FROM livewell.worker w
                    WHERE livewell.works_queue(w.queues, q.name) AND w.expires_at > p_now
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
    RETURN v_queues;
END
$$;
COMMENT ON FUNCTION livewell.list_queue_states IS
    'The queues of the system state, as a JSON array.';
REVOKE ALL ON FUNCTION livewell.list_queue_states FROM PUBLIC;
