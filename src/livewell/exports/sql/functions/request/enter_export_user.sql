-- Say for whom this transaction acts: row security holds the owner's functions to that user's rows.
--
-- Called by: cancel_export, count_downloads, delete_export, follow_exports, forget_export_file,
--            list_exports, read_export_file, read_export_files, request_exports, show_export,
--            show_export_batch, show_export_usage; each of them first.
-- There is no user '': a policy that compares with a setting cannot tell it from none.
CREATE OR REPLACE FUNCTION livewell.enter_export_user(p_user text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF p_user IS NULL OR octet_length(p_user) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION 'a user has 1 to 200 bytes' USING ERRCODE = 'LW003';
    END IF;
    PERFORM pg_catalog.set_config('livewell.user_id', p_user, true);
END
$$;
COMMENT ON FUNCTION livewell.enter_export_user IS 'Holds the rest of the transaction to one user.';
REVOKE ALL ON FUNCTION livewell.enter_export_user FROM PUBLIC;
