-- Cancel one job: a waiting one at once, a running one by asking its worker.
--
-- Called by: CLI `jobs cancel`, POST /v1/jobs/{id}/cancel; clients; cancel_seen_job,
--            settle_exports.
-- Answer:    cancelled | requested (running: the worker stops it) | finished (too late) | unknown
CREATE OR REPLACE FUNCTION livewell.cancel_job(p_id bigint)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_state livewell.job_state;
BEGIN
    -- Waits for a claim or finish in flight: those are short.
    SELECT j.state INTO v_state FROM livewell.job j WHERE j.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        IF EXISTS (SELECT FROM livewell.job_history h WHERE h.id = p_id)
            OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = p_id)
        THEN
            RETURN 'finished';
        END IF;
        RETURN 'unknown';
    END IF;
    IF v_state = 'running' THEN
        UPDATE livewell.job j SET cancel_requested = true WHERE j.id = p_id;
        RETURN 'requested';
    END IF;
    PERFORM livewell.settle_jobs(
        ARRAY[p_id], ARRAY['cancelled'], ARRAY[NULL::text], ARRAY['cancelled while it waited'],
        ARRAY[NULL::float8]
    );
    RETURN 'cancelled';
END
$$;
COMMENT ON FUNCTION livewell.cancel_job IS
    'Cancels a waiting job at once, or asks the worker of a running one.';
REVOKE ALL ON FUNCTION livewell.cancel_job FROM PUBLIC;
