-- Say why an attempt failed.
--
-- Called by: the task export.render. With p_again: the job is tried again, or becomes a dead letter
--            (settle_exports then ends the export with this reason). Without: the export has failed
--            for good, and the job ends in the same transaction.
-- Answer:    failed | fenced | over
CREATE OR REPLACE FUNCTION livewell.fail_export(
    p_worker bigint, p_job bigint, p_fence bigint, p_id uuid, p_reason text, p_again boolean,
    p_detail text DEFAULT NULL
)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_export    livewell.export;
BEGIN
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id;
    IF NOT FOUND THEN
        RETURN 'over';
    END IF;
    PERFORM livewell.lock_export_usage(v_export.user_id);
    v_now := livewell.now();
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id FOR NO KEY UPDATE;
    IF v_export.state <> 'running' THEN
        RETURN 'over';
    END IF;
    IF v_export.fence <> p_fence OR NOT livewell.owns_export_job(p_worker, p_job, p_fence) THEN
        RETURN 'fenced';
    END IF;
    UPDATE livewell.export e SET detail = left(p_detail, 300) WHERE e.id = p_id;
    IF NOT p_again THEN
        PERFORM livewell.end_export(v_export, 'failed', p_reason, v_now);
        RETURN 'failed';
    END IF;
    UPDATE livewell.export e
    SET state = 'waiting', reason = p_reason, progress = 0, seq = e.seq + 1,
        steps = livewell.next_export_steps(e, 0, 'waiting', v_now, e.attempt)
    WHERE e.id = p_id;
    RETURN 'failed';
END
$$;
COMMENT ON FUNCTION livewell.fail_export IS
    'Writes down why an attempt failed, and ends the export if it is not tried again.';
REVOKE ALL ON FUNCTION livewell.fail_export FROM PUBLIC;
