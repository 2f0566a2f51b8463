-- Make delayed jobs ready whose time has come.
--
-- Called by: maintain(), every second, by any worker.
-- Index:     job_delayed_idx.
-- The rank counts from run_at, so a job that waited for its time is not behind everything enqueued
-- meanwhile.
CREATE OR REPLACE FUNCTION livewell.promote_jobs(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_n     integer;
BEGIN
    UPDATE livewell.job j
    SET state = 'ready', rank = (extract(epoch FROM j.run_at) * 1000)::bigint - j.priority * 60000
    WHERE j.id = ANY (
        ARRAY(
            SELECT d.id FROM livewell.job d
            WHERE d.state = 'delayed' AND d.run_at <= v_now
            ORDER BY d.run_at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.promote_jobs IS 'Turns due delayed jobs ready; answers how many.';
REVOKE ALL ON FUNCTION livewell.promote_jobs FROM PUBLIC;
