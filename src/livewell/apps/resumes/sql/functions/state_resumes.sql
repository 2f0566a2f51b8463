-- Documents in the system state: how many there are, of how many users, and their bytes.
--
-- Called by: system_state, which finds every state_<name>().
-- At most 10,000 users are counted; beyond that it says "at_least".
-- Why SECURITY DEFINER: operators and readers may know how much there is, and not of whom.
CREATE OR REPLACE FUNCTION livewell.state_resumes()
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_users     pg_catalog.int8;
    v_documents pg_catalog.int8;
    v_bytes     pg_catalog.int8;
BEGIN
    PERFORM set_config('livewell.user_id', '', true), set_config('livewell.counts', 'on', true);
    SELECT count(*), coalesce(sum(u.documents), 0), coalesce(sum(u.bytes), 0)
    INTO v_users, v_documents, v_bytes
    FROM (SELECT * FROM livewell.resume_user o WHERE o.documents > 0 LIMIT 10000) u;
    PERFORM set_config('livewell.counts', '', true);
    RETURN jsonb_build_object(
        'how', CASE WHEN v_users < 10000 THEN 'exact' ELSE 'at_least' END,
        'users', v_users, 'documents', v_documents, 'bytes', v_bytes);
END
$$;
COMMENT ON FUNCTION livewell.state_resumes IS 'How many documents there are, and how large they are.';
REVOKE ALL ON FUNCTION livewell.state_resumes FROM PUBLIC;
