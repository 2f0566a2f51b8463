-- Say for which user this transaction acts: row security holds it to that user's documents.
--
-- Called by: change_resume, create_resume, delete_resume, list_resume_versions, list_resumes,
--            show_resume; each of them first.
-- There is no user '': a policy that compares with a setting cannot tell it from none.
CREATE OR REPLACE FUNCTION livewell.enter_resumes(p_user text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF p_user IS NULL OR octet_length(p_user) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION 'user: 1 to 200 bytes are allowed' USING ERRCODE = 'LW003';
    END IF;
    PERFORM set_config('livewell.user_id', p_user, true);
END
$$;
COMMENT ON FUNCTION livewell.enter_resumes IS
    'Holds the rest of the transaction to the documents of one user.';
REVOKE ALL ON FUNCTION livewell.enter_resumes FROM PUBLIC;
