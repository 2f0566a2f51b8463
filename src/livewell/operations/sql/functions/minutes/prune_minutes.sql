-- Delete figures that are older than two days.
--
-- Called by: the hourly housekeeping. Index: state_minute_pkey.
CREATE OR REPLACE FUNCTION livewell.prune_minutes(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_before    timestamptz := livewell.now() - interval '2 days';
    v_gone      integer;
BEGIN
    DELETE FROM livewell.state_minute m
    WHERE m.minute = ANY (ARRAY(
        SELECT o.minute FROM livewell.state_minute o
        WHERE o.minute < v_before
        ORDER BY o.minute LIMIT p_limit));
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    RETURN v_gone;
END
$$;
COMMENT ON FUNCTION livewell.prune_minutes IS 'Deletes figures of minutes that are two days old.';
REVOKE ALL ON FUNCTION livewell.prune_minutes FROM PUBLIC;
