-- Whose files are the most: numbers by user, nothing of what is in them.
--
-- Called by: state_exports.
CREATE OR REPLACE FUNCTION livewell.list_export_users(p_limit integer)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    RETURN coalesce((
        SELECT jsonb_agg(to_jsonb(l) ORDER BY l.stored_bytes + l.reserved_bytes DESC, l."user")
        FROM (
            SELECT u.user_id AS "user", u.stored_bytes, u.reserved_bytes, u.bytes_max, u.day_count,
                u.day_max
            FROM livewell.export_usage u
            WHERE u.stored_bytes + u.reserved_bytes > 0
            ORDER BY u.stored_bytes + u.reserved_bytes DESC, u.user_id
            LIMIT least(greatest(p_limit, 1), 100)
        ) l), '[]');
END
$$;
COMMENT ON FUNCTION livewell.list_export_users IS 'Users with the most bytes stored.';
REVOKE ALL ON FUNCTION livewell.list_export_users FROM PUBLIC;
