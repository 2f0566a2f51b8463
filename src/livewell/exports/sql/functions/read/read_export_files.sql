-- The files of a batch, in order, for its ZIP: also those that are not there, with the reason.
--
-- Called by: Exports.batch_files; GET /v1/exports/batch/{id}/zip.
-- Answer:    NULL if the user has no such batch.
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.read_export_files(p_user text, p_batch uuid)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_files pg_catalog.jsonb;
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    PERFORM FROM livewell.export_batch b WHERE b.id = p_batch AND b.user_id = p_user;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'export', e.id, 'file_name', e.file_name, 'document', e.document_id,
        'version', e.document_version, 'reason', e.reason, 'detail', e.detail, 'path', f.path, 'bytes', e.bytes,
        'crc32', e.crc32, 'sha256', encode(e.sha256, 'hex'), 'finished_at', e.finished_at,
        'status', livewell.export_verdict(e.state, e.expires_at, v_now)) ORDER BY m.place), '[]')
    INTO v_files
    FROM livewell.export_member m
    JOIN livewell.export e ON e.id = m.export_id
    LEFT JOIN livewell.export_file f ON f.export_id = e.id AND f.state = 'stored'
    WHERE m.batch_id = p_batch;
    RETURN v_files;
END
$$;
COMMENT ON FUNCTION livewell.read_export_files IS 'What the ZIP of a batch is made of.';
REVOKE ALL ON FUNCTION livewell.read_export_files FROM PUBLIC;
