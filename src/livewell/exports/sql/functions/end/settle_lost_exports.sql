-- End a user's exports whose job is over, but did not end them: it is a dead letter, was cancelled
-- by an operator, or is gone. What they had reserved is given back.
--
-- Called by: settle_exports; cancel_export, list_exports, request_exports, show_export,
--            show_export_batch: who asks is
--            told the truth before the next settling.
-- Index:     export_same_idx (its user), job_pkey, dead_job_pkey, job_history_id_idx
-- Why the job is looked for after the lock: whoever finishes an export locks the user, then ends the
-- job; an export that is seen unfinished under the lock, without a job, will never be finished.
CREATE OR REPLACE FUNCTION livewell.settle_lost_exports(p_user text)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       pg_catalog.timestamptz;
    v_export    livewell.export;
    v_end       record;
    v_n         integer := 0;
BEGIN
    PERFORM FROM livewell.export e
    WHERE e.user_id = p_user
        AND e.state IN ('waiting', 'running')
        AND NOT EXISTS (SELECT FROM livewell.job j WHERE j.id = e.job_id)
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN 0;       -- nearly always, and without a lock
    END IF;
    PERFORM livewell.lock_export_usage(p_user);
    v_now := livewell.now();
    FOR v_export IN
        SELECT e.* FROM livewell.export e
        WHERE e.user_id = p_user AND e.state IN ('waiting', 'running')
        ORDER BY e.id FOR NO KEY UPDATE
    LOOP
        CONTINUE WHEN EXISTS (SELECT FROM livewell.job j WHERE j.id = v_export.job_id);
        SELECT CASE
                WHEN d.id IS NOT NULL THEN 'failed'
                WHEN h.outcome = 'cancelled' THEN 'cancelled'
                ELSE 'failed'
            END AS state,
            CASE
                WHEN d.id IS NOT NULL AND d.reason <> 'lost' THEN coalesce(v_export.reason, 'internal')
                WHEN h.outcome = 'cancelled' THEN 'cancelled'
                ELSE 'lost'
            END AS reason
        INTO v_end
        FROM (VALUES (v_export.job_id)) AS q (id)
        LEFT JOIN livewell.dead_job d ON d.id = q.id
        LEFT JOIN LATERAL (
            SELECT g.outcome FROM livewell.job_history g
            WHERE g.id = q.id ORDER BY g.finished_at DESC LIMIT 1
        ) h ON true;
        PERFORM livewell.end_export(v_export, v_end.state, v_end.reason, v_now);
        v_n := v_n + 1;
    END LOOP;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.settle_lost_exports IS
    'Ends the exports of a user whose jobs ended elsewhere, and refunds them.';
REVOKE ALL ON FUNCTION livewell.settle_lost_exports FROM PUBLIC;
