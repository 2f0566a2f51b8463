-- Delete what operators did long ago, a bounded number per call.
--
-- Called by: housekeeping, until it answers 0. Index: audit_at_idx.
-- Why SECURITY DEFINER: nobody else may delete from this table, and ninety days are kept whatever
-- the caller says.
CREATE OR REPLACE FUNCTION livewell.prune_audit(p_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_before pg_catalog.timestamptz := livewell.now() - make_interval(days => greatest(p_days, 90));
    v_deleted pg_catalog.int4;
BEGIN
    DELETE FROM livewell.audit a
    WHERE a.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.audit o
            WHERE o.at < v_before
            ORDER BY o.at LIMIT greatest(least(p_limit, 10000), 0) FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    RETURN v_deleted;
END
$$;
COMMENT ON FUNCTION livewell.prune_audit IS
    'Deletes acts older than p_days, ninety at least; answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_audit FROM PUBLIC;
