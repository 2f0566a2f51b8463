-- End an unfinished export without a file, and give back what it had reserved.
--
-- Called by: cancel_export, begin_export, fail_export, plan_export_file, settle_lost_exports; all of
--            them hold the locks of the user and of the export.
-- A file that its attempt may still be writing keeps its row: it is an orphan once the attempt is
-- over (claim_export_files).
CREATE OR REPLACE FUNCTION livewell.end_export(
    p_export livewell.export, p_state text, p_reason text, p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    -- Failures that are not the document's: the day's allowance comes back, too.
    c_ours  CONSTANT pg_catalog.text[] := ARRAY[
        'died', 'internal', 'library_missing', 'lost', 'store_full', 'store_unreachable'
    ];
BEGIN
    UPDATE livewell.export e
    SET state = p_state, reason = p_reason, reserved_bytes = 0, finished_at = p_now,
        over_at = p_now, seq = e.seq + 1,
        steps = livewell.next_export_steps(e, e.progress, p_state, p_now, e.attempt)
    WHERE e.id = p_export.id;
    UPDATE livewell.export_usage u
    SET reserved_bytes = u.reserved_bytes - p_export.reserved_bytes,
        day_count = u.day_count - (
            p_state = 'failed' AND p_reason = ANY (c_ours) AND u.day_count > 0
            AND u.day = (p_export.created_at AT TIME ZONE 'UTC')::pg_catalog.date
        )::integer
    WHERE u.user_id = p_export.user_id;
    PERFORM livewell.end_export_batches(
        ARRAY(SELECT m.batch_id FROM livewell.export_member m WHERE m.export_id = p_export.id),
        p_now);
END
$$;
COMMENT ON FUNCTION livewell.end_export IS
    'Ends an export that has no file, as failed or cancelled, and refunds what it had reserved.';
REVOKE ALL ON FUNCTION livewell.end_export FROM PUBLIC;
