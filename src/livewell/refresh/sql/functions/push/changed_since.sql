-- Which keys changed in any way that is shown, since the caller last looked: their names and
-- status_version, nothing else. One row; its lists are in the order of status_at, type, key.
--
-- Called by: the hub (refresh/push/hub.py), at every wake-up. It drops what it knows by
--            status_version and reads what somebody here follows with read_readings.
-- p_cursor:    the `at` of the call before; NULL: now. p_back: seconds before it that are looked at
--              again: status_at is read before the commit, so a slow store becomes visible behind
--              the cursor (T4).
-- p_after_…:   the last of the page before, when that was full; NULL for the first page.
-- If the clock was set back, it is looked at again from there.
-- Index:       ledger_status_idx. Cost grows with what changed lately, not with what exists or is
--              followed.
CREATE OR REPLACE FUNCTION livewell.changed_since(
    p_cursor timestamptz, p_back float8, p_limit integer, p_after_at timestamptz DEFAULT NULL,
    p_after_type text DEFAULT NULL, p_after_key text DEFAULT NULL)
RETURNS TABLE (at timestamptz, types text[], keys text[], versions bigint[], last_at timestamptz)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_since     timestamptz := coalesce(
        p_after_at,
        least(p_cursor, v_now) - least(greatest(p_back, 0), 3600) * interval '1 second');
BEGIN
    RETURN QUERY
    SELECT v_now, coalesce(array_agg(c.data_type), '{}'), coalesce(array_agg(c.key), '{}'),
           coalesce(array_agg(c.status_version), '{}'), max(c.status_at)
    FROM (
        SELECT l.data_type, l.key, l.status_version, l.status_at FROM livewell.ledger l
        WHERE l.status_at >= v_since
          AND (
              p_after_at IS NULL
                  OR (l.status_at, l.data_type, l.key) > (p_after_at, p_after_type, p_after_key))
        ORDER BY l.status_at, l.data_type, l.key LIMIT least(greatest(p_limit, 1), 10000)) c;
END
$$;
COMMENT ON FUNCTION livewell.changed_since IS
    'Keys whose state changed since a cursor, with a look back for late commits; one page.';
REVOKE ALL ON FUNCTION livewell.changed_since FROM PUBLIC;
