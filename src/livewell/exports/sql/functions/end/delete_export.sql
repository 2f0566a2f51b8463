-- Delete the file of a finished export; what is not finished is cancelled (E5).
--
-- Called by: Exports.delete, DELETE /v1/exports/{id}.
-- Answer:    {answer: deleted, paths: [the files to remove now]} | as cancel_export.
-- The quota is free and links are dead with this transaction. The files are removed by whoever
-- asked, and by the cleaner if that fails.
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.delete_export(p_user text, p_id uuid)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now       pg_catalog.timestamptz;
    v_export    livewell.export;
    v_paths     pg_catalog.text[];
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    PERFORM FROM livewell.export e WHERE e.id = p_id AND e.user_id = p_user;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM livewell.lock_export_usage(p_user);
    SELECT e.* INTO v_export FROM livewell.export e
    WHERE e.id = p_id AND e.user_id = p_user FOR NO KEY UPDATE;
    IF v_export.state IN ('waiting', 'running') THEN
        RETURN livewell.cancel_export(p_user, p_id);
    END IF;
    IF v_export.state <> 'finished' THEN
        RETURN jsonb_build_object('answer', 'ended', 'state', v_export.state);
    END IF;
    v_now := livewell.now();
    UPDATE livewell.export e
    SET state = 'deleted', stored_bytes = 0, expires_at = least(e.expires_at, v_now),
        over_at = v_now, seq = e.seq + 1,
        steps = livewell.next_export_steps(e, 100, 'deleted', v_now, e.attempt)
    WHERE e.id = p_id;
    UPDATE livewell.export_usage u SET stored_bytes = u.stored_bytes - v_export.stored_bytes
    WHERE u.user_id = p_user;
    WITH removed AS (
        UPDATE livewell.export_file f
        SET state = 'removing', given_up_at = coalesce(f.given_up_at, v_now)
        WHERE f.export_id = p_id AND f.state IN ('stored', 'removing')
        RETURNING f.path
    )
    SELECT coalesce(array_agg(r.path), '{}') INTO v_paths FROM removed r;
    RETURN jsonb_build_object('answer', 'deleted', 'paths', to_jsonb(v_paths));
END
$$;
COMMENT ON FUNCTION livewell.delete_export IS
    'Gives up the file of a finished export at once, or cancels one that has not ended.';
REVOKE ALL ON FUNCTION livewell.delete_export FROM PUBLIC;
