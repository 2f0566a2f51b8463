-- What a user has stored, reserved and asked for today.
--
-- Called by: Exports.usage.
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.show_export_usage(p_user text)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_usage     livewell.export_usage;
    v_expired   bigint;
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    SELECT u.* INTO v_usage FROM livewell.export_usage u WHERE u.user_id = p_user;
    SELECT sum(e.stored_bytes) INTO v_expired FROM livewell.export e
    WHERE e.user_id = p_user AND e.stored_bytes > 0 AND e.expires_at <= v_now;
    RETURN jsonb_build_object(
        'stored', coalesce(v_usage.stored_bytes, 0) - coalesce(v_expired, 0),
        'reserved', coalesce(v_usage.reserved_bytes, 0),
        'today', CASE
            WHEN v_usage.day = (v_now AT TIME ZONE 'UTC')::pg_catalog.date THEN v_usage.day_count
            ELSE 0
        END);
END
$$;
COMMENT ON FUNCTION livewell.show_export_usage IS 'How much of their quotas a user has used.';
REVOKE ALL ON FUNCTION livewell.show_export_usage FROM PUBLIC;
