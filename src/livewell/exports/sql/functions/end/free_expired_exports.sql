-- Give back the quota of a user's expired exports, and their files to the cleaner.
--
-- Called by: expire_exports, request_exports; both hold the user's lock.
-- Index:     export_expiry_idx, export_file_export_idx
-- A request looks itself: no user is refused because a cleaner is late.
CREATE OR REPLACE FUNCTION livewell.free_expired_exports(p_user text, p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_ids   pg_catalog.uuid[];
    v_bytes bigint;
BEGIN
    SELECT array_agg(e.id), sum(e.stored_bytes) INTO v_ids, v_bytes FROM livewell.export e
    WHERE e.user_id = p_user AND e.stored_bytes > 0 AND e.expires_at <= p_now;
    IF v_ids IS NULL THEN
        RETURN 0;
    END IF;
    UPDATE livewell.export e SET stored_bytes = 0 WHERE e.id = ANY (v_ids);
    UPDATE livewell.export_usage u SET stored_bytes = u.stored_bytes - v_bytes
    WHERE u.user_id = p_user;
    UPDATE livewell.export_file f SET state = 'removing', given_up_at = p_now
    WHERE f.export_id = ANY (v_ids) AND f.state = 'stored';
    RETURN cardinality(v_ids);
END
$$;
COMMENT ON FUNCTION livewell.free_expired_exports IS
    'Frees the quota of expired exports of a user and marks their files for removal.';
REVOKE ALL ON FUNCTION livewell.free_expired_exports FROM PUBLIC;
