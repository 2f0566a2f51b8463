-- Write the next version of a document, if it is still at the version that its editor saw.
--
-- Called by: Resumes.change, PUT /v1/resumes/ID.
-- p_expected: that version. Answers changed | same (nothing of it is new) | conflict (with the
-- version that it has by now) | missing | bytes (the user has as much as is allowed).
-- Of a document p_versions_max versions are kept. Those that an unfinished export names stay longer.
-- Index:     resume_document_pkey, resume_version_pkey
-- Why SECURITY DEFINER: as create_resume.
CREATE OR REPLACE FUNCTION livewell.change_resume(
    p_user text,
    p_id uuid,
    p_expected integer,
    p_name text,
    p_content text,
    p_versions_max integer,
    p_bytes_max bigint
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now   pg_catalog.timestamptz;
    v_hash  pg_catalog.bytea := sha256(convert_to(p_content, 'UTF8'));
    v_was   livewell.resume_document;
    v_last  pg_catalog.bytea;
    v_used  pg_catalog.int8;
BEGIN
    PERFORM livewell.enter_resumes(p_user);
    PERFORM FROM livewell.resume_user u WHERE u.user_id = p_user FOR UPDATE;
    SELECT d.* INTO v_was FROM livewell.resume_document d
    WHERE d.user_id = p_user AND d.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('answer', 'missing');
    END IF;
    v_now := livewell.now();
    SELECT v.hash INTO v_last FROM livewell.resume_version v
    WHERE v.document_id = p_id AND v.version = v_was.version;
    IF v_last = v_hash AND v_was.name = p_name THEN
        RETURN jsonb_build_object('answer', 'same', 'version', v_was.version);
    ELSIF v_was.version <> p_expected THEN
        RETURN jsonb_build_object('answer', 'conflict', 'version', v_was.version);
    ELSIF v_last = v_hash THEN
        -- Another name is no other content: what was exported as this version stays as it was.
        UPDATE livewell.resume_document d SET name = p_name, changed_at = v_now WHERE d.id = p_id;
        RETURN jsonb_build_object('answer', 'changed', 'version', v_was.version);
    END IF;
    v_used := livewell.drop_resume_versions(
        p_user, p_id, v_was.version - p_versions_max + 1, p_bytes_max - octet_length(p_content)
    );
    IF v_used + octet_length(p_content) > p_bytes_max THEN
        RETURN jsonb_build_object('answer', 'bytes', 'used', v_used, 'allowed', p_bytes_max);
    END IF;
    INSERT INTO livewell.resume_version (
        document_id, written_at, version, bytes, user_id, hash, content
    )
    VALUES (
        p_id, v_now, v_was.version + 1, octet_length(p_content), p_user, v_hash, p_content
    );
    UPDATE livewell.resume_document d
    SET name = p_name, changed_at = v_now, version = v_was.version + 1
    WHERE d.id = p_id;
    UPDATE livewell.resume_user u SET bytes = u.bytes + octet_length(p_content)
    WHERE u.user_id = p_user;
    RETURN jsonb_build_object('answer', 'changed', 'version', v_was.version + 1);
END
$$;
COMMENT ON FUNCTION livewell.change_resume IS
    'Writes the next version of a document, unless somebody wrote it first.';
REVOKE ALL ON FUNCTION livewell.change_resume FROM PUBLIC;
