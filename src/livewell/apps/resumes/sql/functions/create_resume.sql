-- A new document with its first version.
--
-- Called by: Resumes.create, POST /v1/resumes.
-- p_id: chosen by the caller. p_request: a key for this call; with it the same call again answers
--       the same document, and another content with it is refused.
-- Answers made | same | reused (the key was used for something else) | documents | bytes (the user
-- has as much as is allowed).
-- Index:     resume_document_request_idx, resume_document_pkey
-- Why SECURITY DEFINER: no role has a right on tables of documents; it acts for the user it is given,
-- and row security holds it to that user's rows.
-- Why the row of the user is locked first: two that come together would each count before the other.
CREATE OR REPLACE FUNCTION livewell.create_resume(
    p_user text,
    p_id uuid,
    p_request text,
    p_name text,
    p_content text,
    p_documents_max integer,
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
    v_asked pg_catalog.bytea := sha256(convert_to(p_name || chr(10) || p_content, 'UTF8'));
    v_has   livewell.resume_user;
    v_found livewell.resume_document;
BEGIN
    PERFORM livewell.enter_resumes(p_user);
    INSERT INTO livewell.resume_user (user_id) VALUES (p_user) ON CONFLICT DO NOTHING;
    SELECT u.* INTO v_has FROM livewell.resume_user u WHERE u.user_id = p_user FOR UPDATE;
    v_now := livewell.now();
    SELECT d.* INTO v_found FROM livewell.resume_document d
    WHERE d.user_id = p_user AND (d.request = p_request OR d.id = p_id)
    ORDER BY d.request = p_request DESC NULLS LAST LIMIT 1;
    IF FOUND THEN
        RETURN jsonb_build_object(
            'answer', CASE WHEN v_found.request_hash IS DISTINCT FROM v_asked
                THEN 'reused' ELSE 'same' END,
            'id', v_found.id, 'version', v_found.version);
    ELSIF v_has.documents >= p_documents_max THEN
        RETURN jsonb_build_object(
            'answer', 'documents', 'used', v_has.documents, 'allowed', p_documents_max);
    ELSIF v_has.bytes + octet_length(p_content) > p_bytes_max THEN
        RETURN jsonb_build_object('answer', 'bytes', 'used', v_has.bytes, 'allowed', p_bytes_max);
    END IF;
    INSERT INTO livewell.resume_document (
        id, created_at, changed_at, version, user_id, "name", request, request_hash
    )
    VALUES (p_id, v_now, v_now, 1, p_user, p_name, p_request, v_asked);
    INSERT INTO livewell.resume_version (
        document_id, written_at, version, bytes, user_id, hash, content
    )
    VALUES (p_id, v_now, 1, octet_length(p_content), p_user, v_hash, p_content);
    UPDATE livewell.resume_user u
    SET documents = u.documents + 1, bytes = u.bytes + octet_length(p_content)
    WHERE u.user_id = p_user;
    RETURN jsonb_build_object('answer', 'made', 'id', p_id, 'version', 1);
END
$$;
COMMENT ON FUNCTION livewell.create_resume IS
    'Makes a document of a user, or says that it is there already or that the user has too much.';
REVOKE ALL ON FUNCTION livewell.create_resume FROM PUBLIC;
