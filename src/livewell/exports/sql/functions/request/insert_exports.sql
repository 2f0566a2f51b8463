-- Make the new exports of a request, each with its job.
--
-- Called by: request_exports, which holds the user's lock and has counted the quotas.
-- The payload of the job is the id of the export and nothing else (E15). Its group is a hash of the
-- user: at most so many of one user run at once (E3).
CREATE OR REPLACE FUNCTION livewell.insert_exports(
    p_user text, p_found jsonb, p_trace text, p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_first bigint;
    v_group pg_catalog.text;
BEGIN
    SELECT f INTO v_first FROM livewell.reserve_job_ids(1) AS f;
    v_group := left(encode(pg_catalog.sha256(convert_to(p_user, 'UTF8')), 'hex'), 32);
    INSERT INTO livewell.export (
        id, job_id, user_id, kind, document_id, document_version, options, options_hash, file_name,
        state, reserved_bytes, created_at, seq, steps
    )
    SELECT m.id, v_first + m.place, p_user, m.kind, m.document, m.version, m.options,
        decode(m.hash, 'hex'), m.file_name, 'waiting', k.bytes_estimate, p_now, 1,
        jsonb_build_array(jsonb_build_array(1, 0, 'waiting', p_now, 0))
    FROM jsonb_to_recordset(p_found) AS m (
        place integer, answer pg_catalog.text, id pg_catalog.uuid, kind pg_catalog.text, document pg_catalog.text,
        version pg_catalog.text, options pg_catalog.jsonb, hash pg_catalog.text, file_name pg_catalog.text
    )
    JOIN livewell.export_kind k ON k.name = m.kind
    WHERE m.answer = 'made';
    PERFORM livewell.enqueue_jobs((
        SELECT jsonb_agg(jsonb_build_object(
            'id', v_first + m.place, 'queue', 'exports', 'kind', 'export.render',
            'payload', jsonb_build_object('export', m.id), 'unique_key', m.id,
            'group_key', v_group, 'lane', 0, 'trace', p_trace) ORDER BY m.place)
        FROM jsonb_to_recordset(p_found) AS m (
            place integer, answer pg_catalog.text, id pg_catalog.uuid
        )
        WHERE m.answer = 'made'));
END
$$;
COMMENT ON FUNCTION livewell.insert_exports IS 'Writes new exports and enqueues their jobs.';
REVOKE ALL ON FUNCTION livewell.insert_exports FROM PUBLIC;
