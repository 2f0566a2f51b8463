-- A version that was written stays as it is (E16): what an export says of it stays true.
--
-- Called by: the trigger of livewell.resume_version, whoever updates a row of it.
CREATE OR REPLACE FUNCTION livewell.refuse_resume_change()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    RAISE EXCEPTION 'version % of a document cannot be changed; write the next one', old.version
        USING ERRCODE = 'LW003';
END
$$;
COMMENT ON FUNCTION livewell.refuse_resume_change IS 'Keeps every version of a résumé as it is.';
REVOKE ALL ON FUNCTION livewell.refuse_resume_change FROM PUBLIC;
