-- Write down the file that is about to be written, and make room for it.
--
-- Called by: the task export.render, before it stores what was rendered (step 75). Committed before
--            the file is written: a file without a row cannot exist (E11).
-- What was reserved becomes what is needed. If the user has no room for it, the export ends as
-- failed (quota), and nothing is written.
-- Answer:    planned | full | fenced | over
CREATE OR REPLACE FUNCTION livewell.plan_export_file(
    p_worker bigint, p_job bigint, p_fence bigint, p_id uuid, p_path text, p_bytes bigint,
    p_bytes_max bigint
)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_usage     livewell.export_usage;
    v_export    livewell.export;
BEGIN
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id;
    IF NOT FOUND THEN
        RETURN 'over';
    END IF;
    v_usage := livewell.lock_export_usage(v_export.user_id);
    v_now := livewell.now();
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id FOR NO KEY UPDATE;
    IF v_export.state <> 'running' THEN
        RETURN 'over';
    END IF;
    IF v_export.fence <> p_fence OR NOT livewell.owns_export_job(p_worker, p_job, p_fence) THEN
        RETURN 'fenced';
    END IF;
    IF v_usage.stored_bytes + v_usage.reserved_bytes - v_export.reserved_bytes + p_bytes
        > p_bytes_max AND p_bytes > v_export.reserved_bytes THEN
        PERFORM livewell.end_export(v_export, 'failed', 'quota', v_now);
        RETURN 'full';
    END IF;
    UPDATE livewell.export_usage u
    SET reserved_bytes = u.reserved_bytes - v_export.reserved_bytes + p_bytes
    WHERE u.user_id = v_export.user_id;
    UPDATE livewell.export e
    SET reserved_bytes = p_bytes, progress = 75, seq = e.seq + 1,
        steps = livewell.next_export_steps(e, 75, 'running', v_now, e.attempt)
    WHERE e.id = p_id;
    INSERT INTO livewell.export_file (
        path, export_id, user_id, job_id, fence, bytes, written_at, state
    )
    VALUES (p_path, p_id, v_export.user_id, p_job, p_fence, p_bytes, v_now, 'writing')
    ON CONFLICT (path) DO NOTHING;      -- the same call again
    RETURN 'planned';
END
$$;
COMMENT ON FUNCTION livewell.plan_export_file IS
    'Writes the row of a file before the file, and reserves exactly its bytes.';
REVOKE ALL ON FUNCTION livewell.plan_export_file FROM PUBLIC;
