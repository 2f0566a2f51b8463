-- Give back the quota of exports that have expired, and their files to the cleaner.
--
-- Called by: the duty livewell.exports.cleanup, until it answers 0.
-- Index:     export_expiry_idx
CREATE OR REPLACE FUNCTION livewell.expire_exports(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_n     integer := 0;
    v_user  text;
BEGIN
    FOR v_user IN
        SELECT DISTINCT o.user_id FROM (
            SELECT e.user_id FROM livewell.export e
            WHERE e.stored_bytes > 0 AND e.expires_at <= v_now
            ORDER BY e.expires_at LIMIT least(greatest(p_limit, 1), 1000)
        ) o
        ORDER BY o.user_id
    LOOP
        PERFORM livewell.lock_export_usage(v_user);
        v_n := v_n + livewell.free_expired_exports(v_user, v_now);
    END LOOP;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.expire_exports IS 'Frees the quota of expired exports, of all users.';
REVOKE ALL ON FUNCTION livewell.expire_exports FROM PUBLIC;
