-- Every queue with its policy and what waits in it.
--
-- Called by: CLI `queues list`. Counts live rows only; finished work comes from stat.
CREATE OR REPLACE FUNCTION livewell.list_queues()
RETURNS TABLE (
    name text, paused_at timestamptz, attempts smallint, ready bigint, delayed bigint, held bigint,
    running bigint, dead bigint, oldest_ready_seconds float8, overdue_delayed bigint,
    workers bigint, done_per_minute float8
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT q.name, q.paused_at, q.attempts, coalesce(j.ready, 0), coalesce(j.delayed, 0),
        coalesce(j.held, 0), coalesce(j.running, 0),
        (SELECT count(*) FROM livewell.dead_job d WHERE d.queue = q.name),
        extract(epoch FROM v_now - j.oldest)::float8, coalesce(j.overdue, 0),
        (
            SELECT count(*) FROM livewell.worker w
            WHERE livewell.works_queue(w.queues, q.name) AND w.expires_at > v_now
        ),
        coalesce(
            (
                SELECT sum(s.n)::float8 / 5 FROM livewell.stat s
                WHERE s.queue = q.name
                    AND s.outcome = 'succeeded'
                    AND s.minute > v_now - interval '5 minutes'
            ),
            0
        )
    FROM livewell.queue q
    LEFT JOIN (
        SELECT l.queue, count(*) FILTER (WHERE l.state = 'ready') AS ready,
            count(*) FILTER (WHERE l.state = 'delayed') AS delayed,
            count(*) FILTER (WHERE l.state = 'held') AS held,
            count(*) FILTER (WHERE l.state = 'running') AS running,
            min(l.run_at) FILTER (WHERE l.state = 'ready') AS oldest,
            -- Q12: a delayed job past its time by a minute is stuck, and seen.
            count(*) FILTER (
                WHERE l.state = 'delayed' AND l.run_at < v_now - interval '1 minute'
            ) AS overdue
        FROM livewell.job l
        GROUP BY l.queue
    ) j ON j.queue = q.name
    ORDER BY q.name;
END
$$;
COMMENT ON FUNCTION livewell.list_queues IS
    'Queues with counts by state, age of the oldest ready job, live workers and recent '
    'throughput.';
REVOKE ALL ON FUNCTION livewell.list_queues FROM PUBLIC;
