-- A page of the versions of a document, the newest first; without their content. No row: the user
-- has no such document.
--
-- Called by: Resumes.versions, GET /v1/resumes/ID/versions.
-- p_before: the last one of the page before; NULL: from the newest.
-- Index:     resume_version_pkey
-- Why SECURITY DEFINER: as create_resume.
CREATE OR REPLACE FUNCTION livewell.list_resume_versions(
    p_user text, p_id uuid, p_before integer, p_limit integer
)
RETURNS TABLE (version integer, written_at timestamptz, bytes integer, hash text)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    PERFORM livewell.enter_resumes(p_user);
    RETURN QUERY
    SELECT v.version, v.written_at, v.bytes, encode(v.hash, 'hex')
    FROM livewell.resume_version v
    WHERE v.user_id = p_user AND v.document_id = p_id
        AND (p_before IS NULL OR v.version < p_before)
    ORDER BY v.version DESC LIMIT least(greatest(p_limit, 1), 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_resume_versions IS
    'A page of the versions of a document, the newest first.';
REVOKE ALL ON FUNCTION livewell.list_resume_versions FROM PUBLIC;
