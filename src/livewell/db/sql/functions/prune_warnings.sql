-- Delete old warnings, a bounded number per call.
--
-- Called by: the cleanup of a worker, until it answers less than p_limit.
-- Index:     warning_hour_idx (hour, place, what)
-- Why SKIP LOCKED: two cleaners at once share the work; neither waits.
CREATE OR REPLACE FUNCTION livewell.prune_warnings(p_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
    v_before timestamptz := v_now - make_interval(days => p_days);
    v_deleted integer;
BEGIN
    DELETE FROM livewell.warning w
    WHERE w.id = ANY (ARRAY(
        SELECT old.id
        FROM livewell.warning old
        WHERE old.hour < v_before
        ORDER BY old.hour
        LIMIT greatest(p_limit, 0)
        FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    RETURN v_deleted;
END
$$;
COMMENT ON FUNCTION livewell.prune_warnings IS
    'Deletes at most p_limit warnings older than p_days, and answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_warnings FROM PUBLIC;
