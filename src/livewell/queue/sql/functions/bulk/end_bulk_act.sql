-- End an act that is not finished: somebody cancels it, or it cannot go on.
--
-- Called by: step_bulk_act, postpone_bulk_act (p_error: failed), clients (NULL: cancelled). What is
--            done stays done.
-- Waits for the page that is under way: those are short.
-- Answer:    cancelled | failed | ended (it had ended before) | unknown
CREATE OR REPLACE FUNCTION livewell.end_bulk_act(p_id bigint, p_error text, p_actor text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_act   livewell.bulk_act;
    v_now   timestamptz;
    v_state text := CASE WHEN p_error IS NULL THEN 'cancelled' ELSE 'failed' END;
BEGIN
    SELECT * INTO v_act FROM livewell.bulk_act b WHERE b.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'unknown';
    ELSIF v_act.state <> 'running' THEN
        RETURN 'ended';
    END IF;
    v_now := livewell.now();
    UPDATE livewell.bulk_act b
    SET state = v_state, ended_at = v_now, rest_until = NULL, busy_ids = '{}',
        error = left(livewell.redact(p_error), 1000)
    WHERE b.id = p_id;
    PERFORM livewell.audit_act(
        p_actor, NULL, CASE WHEN p_error IS NULL THEN 'acts.cancel' ELSE 'acts.end' END,
        'act ' || p_id, jsonb_build_object('action', v_act.action, 'filter', v_act.filter),
        format('%s: %s done, %s skipped', v_state, v_act.done, v_act.skipped), NULL, NULL,
        v_act.done
    );
    RETURN v_state;
END
$$;
COMMENT ON FUNCTION livewell.end_bulk_act IS
    'Cancels an act on many, or ends it as failed; what is done stays done.';
REVOKE ALL ON FUNCTION livewell.end_bulk_act FROM PUBLIC;
