-- The file is removed: forget it, and say so in its export, whose row stays as a tombstone (E14).
--
-- Called by: Exports.delete, and the cleaner, after the file was removed or was found missing.
-- Only a file that nothing points to can be forgotten. Safe to repeat.
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.forget_export_file(p_user text, p_path text)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_export    pg_catalog.uuid;
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    DELETE FROM livewell.export_file f
    WHERE f.path = p_path AND f.user_id = p_user AND f.state = 'removing'
    RETURNING f.export_id INTO v_export;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE livewell.export e SET removed_at = v_now
    WHERE e.id = v_export AND e.user_id = p_user AND e.stored_bytes = 0
        AND e.state IN ('finished', 'deleted') AND e.removed_at IS NULL;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.forget_export_file IS 'Deletes the row of a file that was removed from the store.';
REVOKE ALL ON FUNCTION livewell.forget_export_file FROM PUBLIC;
