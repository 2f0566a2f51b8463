-- Delete a document with all its versions. Exports of it stay: their history says what was exported
-- (E14). Answers whether it was there.
--
-- Called by: Resumes.delete, DELETE /v1/resumes/ID.
-- Index:     resume_document_pkey, resume_version_pkey
-- Why SECURITY DEFINER: as create_resume.
CREATE OR REPLACE FUNCTION livewell.delete_resume(p_user text, p_id uuid)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_bytes pg_catalog.int8;
BEGIN
    PERFORM livewell.enter_resumes(p_user);
    PERFORM FROM livewell.resume_user u WHERE u.user_id = p_user FOR UPDATE;
    SELECT sum(v.bytes) INTO v_bytes FROM livewell.resume_version v
    WHERE v.user_id = p_user AND v.document_id = p_id;
    DELETE FROM livewell.resume_document d WHERE d.user_id = p_user AND d.id = p_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE livewell.resume_user u SET documents = u.documents - 1, bytes = u.bytes - v_bytes
    WHERE u.user_id = p_user;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.delete_resume IS 'Deletes a document of a user; its exports stay.';
REVOKE ALL ON FUNCTION livewell.delete_resume FROM PUBLIC;
