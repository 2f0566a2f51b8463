-- The user's row, locked until the end of the transaction; it is made if there is none.
--
-- Called by: begin_export, cancel_export, delete_export, expire_exports, finish_export, fail_export,
--            plan_export_file, request_exports, settle_exports, settle_lost_exports; each of them
--            before it reads what it decides on, and before any other lock.
-- Index:     export_usage_pkey
CREATE OR REPLACE FUNCTION livewell.lock_export_usage(p_user text)
RETURNS livewell.export_usage
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   pg_catalog.timestamptz;
    v_row   livewell.export_usage;
BEGIN
    SELECT u.* INTO v_row FROM livewell.export_usage u WHERE u.user_id = p_user FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        v_now := livewell.now();
        INSERT INTO livewell.export_usage (user_id, day)
        VALUES (p_user, (v_now AT TIME ZONE 'UTC')::pg_catalog.date)
        ON CONFLICT (user_id) DO NOTHING;
        SELECT u.* INTO v_row FROM livewell.export_usage u
        WHERE u.user_id = p_user FOR NO KEY UPDATE;
    END IF;
    RETURN v_row;
END
$$;
COMMENT ON FUNCTION livewell.lock_export_usage IS 'Locks what a user has stored, reserved and asked for.';
REVOKE ALL ON FUNCTION livewell.lock_export_usage FROM PUBLIC;
