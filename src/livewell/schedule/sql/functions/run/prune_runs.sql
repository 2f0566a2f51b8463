-- Delete runs past their time, a bounded page per call.
--
-- Called by: schedule/housekeeping.py, hourly, until it answers 0.
-- Index:     run_finished_idx (finished_at); a run that runs has none, and stays.
CREATE OR REPLACE FUNCTION livewell.prune_runs(p_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    -- S2: thirty days at least, whatever the caller says
    v_before    timestamptz := v_now - greatest(p_days, 30) * interval '1 day';
    v_deleted   integer;
BEGIN
    DELETE FROM livewell.run r
    WHERE r.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.run o
            WHERE o.finished_at < v_before
            ORDER BY o.finished_at LIMIT greatest(p_limit, 0) FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    RETURN v_deleted;
END
$$;
COMMENT ON FUNCTION livewell.prune_runs IS
    'Removes runs that ended more than p_days ago (30 at least); answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_runs FROM PUBLIC;
