-- Forget exports that have been without a file for so long that nobody asks (E14); a page per call.
--
-- Called by: housekeeping, until it answers 0.
-- Index:     export_over_idx, export_file_export_idx, export_batch_ended_idx
-- An export whose file is still to be removed stays: its row is what says so.
CREATE OR REPLACE FUNCTION livewell.prune_exports(p_tombstone_days float8, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_limit integer := least(greatest(p_limit, 1), 10000);
    v_ids   uuid[];
    v_n     integer;
    v_m     integer;
BEGIN
    v_ids := ARRAY(
        SELECT e.id FROM livewell.export e
        WHERE e.over_at < v_now - greatest(p_tombstone_days, 1) * interval '1 day'
            AND e.stored_bytes = 0
            AND NOT EXISTS (SELECT FROM livewell.export_file f WHERE f.export_id = e.id)
        ORDER BY e.over_at LIMIT v_limit FOR UPDATE SKIP LOCKED);
    DELETE FROM livewell.export_member m WHERE m.export_id = ANY (v_ids);
    DELETE FROM livewell.export e WHERE e.id = ANY (v_ids);
    v_n := cardinality(v_ids);
    DELETE FROM livewell.export_batch b
    WHERE b.id = ANY (ARRAY(
        SELECT o.id FROM livewell.export_batch o
        WHERE o.ended_at < v_now - greatest(p_tombstone_days, 1) * interval '1 day'
            AND NOT EXISTS (SELECT FROM livewell.export_member m WHERE m.batch_id = o.id)
        LIMIT v_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_m = ROW_COUNT;
    DELETE FROM livewell.export_renderer r WHERE r.seen_at < v_now - interval '1 hour';
    RETURN v_n + v_m;
END
$$;
COMMENT ON FUNCTION livewell.prune_exports IS 'Deletes tombstones of exports and empty batches that are old enough.';
REVOKE ALL ON FUNCTION livewell.prune_exports FROM PUBLIC;
