-- Say how far an attempt is. Only its owner can, and never downwards (E2).
--
-- Called by: the task export.render, at 25, 50 and 90; 75 is written by plan_export_file, 100 by
--            finish_export.
-- Answer:    stepped | fenced | over (it was cancelled)
CREATE OR REPLACE FUNCTION livewell.step_export(
    p_worker bigint, p_job bigint, p_fence bigint, p_id uuid, p_progress integer
)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_export    livewell.export;
BEGIN
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id FOR NO KEY UPDATE;
    v_now := livewell.now();
    IF NOT FOUND OR v_export.state <> 'running' THEN
        RETURN 'over';
    END IF;
    IF v_export.fence <> p_fence OR NOT livewell.owns_export_job(p_worker, p_job, p_fence) THEN
        RETURN 'fenced';
    END IF;
    IF p_progress NOT BETWEEN 1 AND 99 THEN
        RAISE EXCEPTION 'progress %: 1 to 99 are steps; 100 is written with the end', p_progress
            USING ERRCODE = 'LW003';
    END IF;
    IF p_progress > v_export.progress THEN
        UPDATE livewell.export e
        SET progress = p_progress, seq = e.seq + 1,
            steps = livewell.next_export_steps(e, p_progress, 'running', v_now, e.attempt)
        WHERE e.id = p_id;
    END IF;
    RETURN 'stepped';
END
$$;
COMMENT ON FUNCTION livewell.step_export IS 'Writes the progress of an attempt, for its owner alone.';
REVOKE ALL ON FUNCTION livewell.step_export FROM PUBLIC;
