-- Where the file of an export is, for its user; counts the download if it is one.
--
-- Called by: Exports.link and open_download; POST /v1/exports/{id}/link, GET /v1/download/{signed}.
-- Answer:    {answer: there, path, …} | {answer: gone, state, since} (deleted, expired: 410) |
--            {answer: none, state, reason} (waiting, running, failed, cancelled: 409) | NULL (404)
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.read_export_file(
    p_user text, p_id uuid, p_count boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_export    livewell.export;
    v_state     pg_catalog.text;
    v_found     pg_catalog.jsonb;
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id AND e.user_id = p_user;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_state := livewell.export_verdict(v_export.state, v_export.expires_at, v_now);
    IF v_state IN ('deleted', 'expired') THEN
        RETURN jsonb_build_object(
            'answer', 'gone', 'state', v_state, 'since', v_export.expires_at,
            'file_name', v_export.file_name);
    ELSIF v_state <> 'finished' THEN
        RETURN jsonb_build_object(
            'answer', 'none', 'state', v_state, 'reason', v_export.reason,
            'detail', v_export.detail, 'progress', v_export.progress);
    END IF;
    SELECT jsonb_build_object(
        'answer', 'there', 'path', f.path, 'bytes', v_export.bytes,
        'sha256', encode(v_export.sha256, 'hex'), 'file_name', v_export.file_name,
        'content_type', k.content_type, 'finished_at', v_export.finished_at,
        'expires_at', v_export.expires_at, 'now', extract(epoch FROM v_now)::double precision,
        'left_seconds', extract(epoch FROM v_export.expires_at - v_now)::double precision)
    INTO v_found
    FROM livewell.export_file f
    JOIN livewell.export_kind k ON k.name = v_export.kind
    WHERE f.export_id = p_id AND f.state = 'stored';
    IF p_count THEN
        UPDATE livewell.export e SET downloads = e.downloads + 1
        WHERE e.id = p_id AND e.user_id = p_user;
    END IF;
    RETURN v_found;
END
$$;
COMMENT ON FUNCTION livewell.read_export_file IS
    'Where the file of an export is, or why there is none; counts downloads.';
REVOKE ALL ON FUNCTION livewell.read_export_file FROM PUBLIC;
