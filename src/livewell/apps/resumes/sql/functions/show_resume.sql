-- A document with one of its versions; NULL if the user has no such document, or it no such version.
--
-- Called by: Resumes.show, GET /v1/resumes/ID; the exporter, as livewell_worker.
-- p_version: NULL for the latest. content is the text as it was written.
-- Index:     resume_document_pkey, resume_version_pkey
-- Why SECURITY DEFINER: as create_resume.
CREATE OR REPLACE FUNCTION livewell.show_resume(p_user text, p_id uuid, p_version integer)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $$
BEGIN
    PERFORM livewell.enter_resumes(p_user);
    RETURN (
        SELECT jsonb_build_object(
            'id', d.id, 'name', d.name, 'created_at', d.created_at, 'changed_at', d.changed_at,
            'latest', d.version, 'version', v.version, 'written_at', v.written_at, 'bytes', v.bytes,
            'hash', encode(v.hash, 'hex'), 'content', v.content)
        FROM livewell.resume_document d
        JOIN livewell.resume_version v
            ON v.document_id = d.id AND v.version = coalesce(p_version, d.version)
        WHERE d.user_id = p_user AND d.id = p_id
    );
END
$$;
COMMENT ON FUNCTION livewell.show_resume IS 'A version of a document of a user, or NULL.';
REVOKE ALL ON FUNCTION livewell.show_resume FROM PUBLIC;
