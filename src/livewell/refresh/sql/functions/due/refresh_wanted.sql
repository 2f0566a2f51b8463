-- Whether a reader wants a refresh of a key: none (fresh enough), wanted, or why it cannot be had:
-- missing (the upstream says there is no such key), backed_off.
--
-- Called by: demand_refresh; read_through, before and after it has locked the row.
CREATE OR REPLACE FUNCTION livewell.refresh_wanted(
    p_type livewell.data_type, p_ledger livewell.ledger, p_max_age float8, p_now timestamptz)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    IF p_ledger.key IS NULL THEN
        RETURN 'wanted';
    END IF;
    IF p_ledger.missing AND livewell.stale_at(p_type, p_ledger) > p_now THEN
        RETURN 'missing';
    END IF;
    IF p_ledger.fetched_at IS NOT NULL AND NOT p_ledger.missing
       AND (
           CASE
               WHEN p_max_age IS NULL THEN NOT livewell.is_stale(p_type, p_ledger, p_now)
               ELSE p_ledger.checked_at > p_now - greatest(p_max_age, 0) * interval '1 second'
           END) THEN
        RETURN 'none';
    END IF;
    RETURN CASE WHEN p_ledger.retry_at > p_now THEN 'backed_off' ELSE 'wanted' END;
END
$$;
COMMENT ON FUNCTION livewell.refresh_wanted IS
    'Whether a key is fresh enough for a reader, may be refreshed, or is known to be missing or '
    'failing.';
REVOKE ALL ON FUNCTION livewell.refresh_wanted FROM PUBLIC;
