-- A page of the documents of a user, the one that changed last first; without their content.
--
-- Called by: Resumes.page, GET /v1/resumes.
-- p_after_at, p_after: the last one of the page before; NULL: from the newest.
-- Index:     resume_document_newest_idx
-- Why SECURITY DEFINER: as create_resume.
CREATE OR REPLACE FUNCTION livewell.list_resumes(
    p_user text, p_after_at timestamptz, p_after uuid, p_limit integer
)
RETURNS TABLE (
    id uuid, name text, version integer, bytes integer, created_at timestamptz,
    changed_at timestamptz
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    PERFORM livewell.enter_resumes(p_user);
    RETURN QUERY
    SELECT d.id, d.name, d.version, v.bytes, d.created_at, d.changed_at
    FROM livewell.resume_document d
    JOIN livewell.resume_version v ON v.document_id = d.id AND v.version = d.version
    WHERE d.user_id = p_user
        AND (p_after IS NULL OR (d.changed_at, d.id) < (p_after_at, p_after))
    ORDER BY d.changed_at DESC, d.id DESC LIMIT least(greatest(p_limit, 1), 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_resumes IS 'A page of the documents of a user, the latest first.';
REVOKE ALL ON FUNCTION livewell.list_resumes FROM PUBLIC;
