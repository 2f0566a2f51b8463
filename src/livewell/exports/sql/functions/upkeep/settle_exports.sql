-- Make exports and jobs agree: end exports whose job ended elsewhere, cancel waiting jobs of exports
-- that have ended.
--
-- Called by: the duty livewell.exports.settle, every few seconds. Answers how many were settled.
-- Index:     export_open_idx, job_pkey; of the jobs those that wait in this queue.
-- Users in the order of their names: two that settle at once do not wait for each other crosswise.
CREATE OR REPLACE FUNCTION livewell.settle_exports(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_limit integer := least(greatest(p_limit, 1), 1000);
    v_n     integer := 0;
    v_user  text;
    v_job   bigint;
BEGIN
    FOR v_user IN
        SELECT DISTINCT l.user_id FROM (
            SELECT e.user_id FROM livewell.export e
            WHERE e.state IN ('waiting', 'running')
                AND NOT EXISTS (SELECT FROM livewell.job j WHERE j.id = e.job_id)
            LIMIT v_limit
        ) l
        ORDER BY l.user_id
    LOOP
        v_n := v_n + livewell.settle_lost_exports(v_user);
    END LOOP;
    FOR v_job IN
        SELECT j.id FROM livewell.export e
        JOIN livewell.job j ON j.id = e.job_id
        WHERE e.state = 'cancelled'
            AND e.finished_at > v_now - interval '1 day'
            AND j.state <> 'running'
        ORDER BY j.id LIMIT v_limit
    LOOP
        v_n := v_n + (livewell.cancel_job(v_job) = 'cancelled')::integer;
    END LOOP;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.settle_exports IS
    'Ends exports whose jobs are over, and cancels the waiting jobs of exports that are.';
REVOKE ALL ON FUNCTION livewell.settle_exports FROM PUBLIC;
