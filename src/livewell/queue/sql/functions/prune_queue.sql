-- Delete dead letters and statistics past their time, a bounded page per call.
--
-- Called by: worker, hourly, until it answers 0.
-- Index:     dead_job_died_idx, stat_pkey.
CREATE OR REPLACE FUNCTION livewell.prune_queue(p_dead_days integer, p_stat_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_dead  integer;
    v_stat  integer;
BEGIN
    DELETE FROM livewell.dead_job d WHERE d.id = ANY (ARRAY(
        -- Q7: thirty days at least, whatever the caller says.
        SELECT o.id FROM livewell.dead_job o WHERE o.died_at < v_now - greatest(p_dead_days, 30) * interval '1 day' ORDER BY o.died_at LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_dead = ROW_COUNT;
    DELETE FROM livewell.stat s WHERE s.ctid = ANY (ARRAY(
        SELECT o.ctid FROM livewell.stat o WHERE o.minute < v_now - greatest(p_stat_days, 1) * interval '1 day' ORDER BY o.minute LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_stat = ROW_COUNT;
    RETURN v_dead + v_stat;
END
$$;
COMMENT ON FUNCTION livewell.prune_queue IS 'Removes expired dead letters and statistics; answers how many rows went.';
REVOKE ALL ON FUNCTION livewell.prune_queue FROM PUBLIC;
