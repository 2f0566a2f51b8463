-- How many bytes a refresh of one key of a type is expected to bring: as measured, until then as
-- the type's file says.
--
-- Called by: whoever reserves or predicts, once for a type: order_refreshes, dispatch_scheduled,
--            refresh_jobs, read_throttle, plan_types, state_refresh. One answer, or what is queued
--            and what is reserved differ (R11, R16).
-- Index:     limiter_estimate_pkey. count_refreshes writes what was measured.
-- Arguments instead of a row of data_type: a row is unpacked with its definition each time.
CREATE OR REPLACE FUNCTION livewell.expected_size(p_upstream text, p_type text, p_stated bigint)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN coalesce(
        (
            SELECT greatest(ceil(e.units), 1)::bigint FROM livewell.limiter_estimate e
            WHERE e.limiter = p_upstream AND e.kind = 'livewell.refresh:' || p_type),
        p_stated);
END
$$;
COMMENT ON FUNCTION livewell.expected_size IS
    'Bytes that a refresh of one key is expected to bring: as measured, until then as the file '
    'says.';
REVOKE ALL ON FUNCTION livewell.expected_size FROM PUBLIC;
