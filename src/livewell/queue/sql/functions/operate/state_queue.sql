-- The state of the queue: what waits where and since when, who works, how fast, what died.
--
-- Called by: system_state. Nothing is counted row by row that can be many: ready, delayed, held and
--            dead come from a sample that is at most ten seconds old (sample_age_seconds says how
--            old, how whether it was counted or estimated, sampled which figures these are);
--            running, has_ready and the heads of the lines, what is overdue (up to 10,000),
--            workers and pace are exact.
-- Steps:     the sample, what runs, then list_queue_states and list_worker_states from both.
-- Index:     job_worker_idx, job_delayed_idx.
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
    SELECT * INTO v_sample FROM livewell.read_queue_sample(v_now);
    v_running := livewell.count_running();
    v_queues := livewell.list_queue_states(v_sample.value, v_running, v_now);
    v_workers := livewell.list_worker_states(v_running, v_now);
    RETURN jsonb_build_object(
        'how', v_sample.value ->> 'how', 'sampled_at', v_sample.at,
        'sample_age_seconds', extract(epoch FROM v_now - v_sample.at)::float8,
        'sampled', '["ready", "delayed", "held", "dead", "dead_reasons"]'::jsonb,
        'queues', v_queues, 'workers', v_workers,
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
