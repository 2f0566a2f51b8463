-- Delete beacons that were not seen for so many days. Called by: the hourly housekeeping, until 0.
CREATE OR REPLACE FUNCTION livewell.prune_beacons(p_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_n     integer;
BEGIN
    DELETE FROM livewell.beacon b WHERE b.name IN (
        SELECT o.name FROM livewell.beacon o
        WHERE o.seen_at < v_now - p_days * interval '1 day' LIMIT p_limit
    );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.prune_beacons IS
    'Deletes beacons that were not seen for long; answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_beacons FROM PUBLIC;
