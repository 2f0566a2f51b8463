-- Cancel an export: a waiting one and a running one end at once, and their quota is free.
--
-- Called by: Exports.cancel, CLI `exports cancel`, delete_export.
-- Answer:    {answer: cancelled, running} | {answer: ended, state} (too late) | NULL: the user has
--            none with that id.
-- What runs is told: its worker stops it, and the fence of the state keeps it from finishing. A job
-- that waits is cancelled by settle_exports, within seconds.
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.cancel_export(p_user text, p_id uuid)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now       pg_catalog.timestamptz;
    v_export    livewell.export;
    v_running   boolean;
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    PERFORM FROM livewell.export e WHERE e.id = p_id AND e.user_id = p_user;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM livewell.lock_export_usage(p_user);
    PERFORM livewell.settle_lost_exports(p_user);
    v_now := livewell.now();
    SELECT e.* INTO v_export FROM livewell.export e
    WHERE e.id = p_id AND e.user_id = p_user FOR NO KEY UPDATE;
    IF v_export.state NOT IN ('waiting', 'running') THEN
        RETURN jsonb_build_object('answer', 'ended', 'state', v_export.state);
    END IF;
    PERFORM livewell.end_export(v_export, 'cancelled', 'cancelled', v_now);
    UPDATE livewell.job j SET cancel_requested = true
    WHERE j.id = v_export.job_id AND j.state = 'running' AND NOT j.cancel_requested;
    v_running := FOUND;
    RETURN jsonb_build_object('answer', 'cancelled', 'running', v_running);
END
$$;
COMMENT ON FUNCTION livewell.cancel_export IS 'Cancels an export of a user that has not ended.';
REVOKE ALL ON FUNCTION livewell.cancel_export FROM PUBLIC;
