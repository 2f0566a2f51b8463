-- An export as its user sees it.
--
-- Called by: list_exports, show_export, show_export_batch.
CREATE OR REPLACE FUNCTION livewell.export_document(p_export livewell.export, p_now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN jsonb_build_object(
        'id', p_export.id, 'kind', p_export.kind, 'document', p_export.document_id,
        'version', p_export.document_version, 'options', p_export.options,
        'file_name', p_export.file_name,
        'state', livewell.export_verdict(p_export.state, p_export.expires_at, p_now),
        'progress', p_export.progress, 'seq', p_export.seq, 'attempt', p_export.attempt,
        'reason', p_export.reason, 'detail', p_export.detail, 'bytes', p_export.bytes, 'pages', p_export.pages,
        'sha256', encode(p_export.sha256, 'hex'), 'crc32', p_export.crc32,
        'downloads', p_export.downloads, 'created_at', p_export.created_at,
        'started_at', p_export.started_at, 'finished_at', p_export.finished_at,
        'expires_at', p_export.expires_at, 'removed_at', p_export.removed_at,
        'as_of', p_export.as_of, 'batches', (
            SELECT coalesce(jsonb_agg(m.batch_id ORDER BY m.batch_id), '[]')
            FROM livewell.export_member m WHERE m.export_id = p_export.id));
END
$$;
COMMENT ON FUNCTION livewell.export_document IS 'What the user of an export sees of it.';
REVOKE ALL ON FUNCTION livewell.export_document FROM PUBLIC;
