-- Delete dead letters, failures, statistics and ended batches past their time, a bounded page per call.
--
-- Called by: worker, hourly, until it answers 0.
-- Index:     dead_job_died_idx, job_failure_failed_idx, stat_pkey, batch_ended_idx.
CREATE OR REPLACE FUNCTION livewell.prune_queue(
    p_dead_days integer, p_stat_days integer, p_limit integer
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_dead  integer;
    v_fail  integer;
    v_stat  integer;
    v_batch integer;
BEGIN
    DELETE FROM livewell.dead_job d
    WHERE d.id = ANY (
        ARRAY(
            -- Q7: thirty days at least, whatever the caller says.
            SELECT o.id FROM livewell.dead_job o
            WHERE o.died_at < v_now - greatest(p_dead_days, 30) * interval '1 day'
            ORDER BY o.died_at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_dead = ROW_COUNT;
    DELETE FROM livewell.job_failure f
    WHERE f.ctid = ANY (
        ARRAY(
            SELECT o.ctid FROM livewell.job_failure o
            WHERE o.failed_at < v_now - greatest(p_dead_days, 30) * interval '1 day'
            ORDER BY o.failed_at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_fail = ROW_COUNT;
    DELETE FROM livewell.stat s
    WHERE s.ctid = ANY (
        ARRAY(
            SELECT o.ctid FROM livewell.stat o
            WHERE o.minute < v_now - greatest(p_stat_days, 1) * interval '1 day'
            ORDER BY o.minute LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_stat = ROW_COUNT;
    -- A batch is past with its dead letters: until then they may be redriven.
    DELETE FROM livewell.batch b
    WHERE b.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.batch o
            WHERE o.ended_at < v_now - greatest(p_dead_days, 30) * interval '1 day'
            ORDER BY o.ended_at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_batch = ROW_COUNT;
    RETURN v_dead + v_fail + v_stat + v_batch;
END
$$;
COMMENT ON FUNCTION livewell.prune_queue IS
    'Removes expired dead letters, failures, statistics and batches; answers how many rows went.';
REVOKE ALL ON FUNCTION livewell.prune_queue FROM PUBLIC;
