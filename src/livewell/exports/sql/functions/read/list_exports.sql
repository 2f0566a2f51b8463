-- A page of a user's exports, the newest first; p_after: the id of the last one before.
--
-- Called by: Exports.list, GET /v1/exports.
-- Index:     export_user_idx
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.list_exports(
    p_user text, p_after uuid, p_limit integer, p_document text DEFAULT NULL
)
RETURNS SETOF jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_at    pg_catalog.timestamptz;
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    PERFORM livewell.settle_lost_exports(p_user);
    IF p_after IS NOT NULL THEN
        SELECT e.created_at INTO v_at FROM livewell.export e
        WHERE e.id = p_after AND e.user_id = p_user;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    RETURN QUERY
    SELECT livewell.export_document(e, v_now) FROM livewell.export e
    WHERE e.user_id = p_user
        AND (v_at IS NULL OR (e.created_at, e.id) < (v_at, p_after))
        AND (p_document IS NULL OR e.document_id = p_document)
    ORDER BY e.created_at DESC, e.id DESC
    LIMIT least(greatest(p_limit, 1), 100);
END
$$;
COMMENT ON FUNCTION livewell.list_exports IS 'A page of the exports of a user, also of those without a file.';
REVOKE ALL ON FUNCTION livewell.list_exports FROM PUBLIC;
