-- Cancel one job, if it is still in the state in which somebody saw it.
--
-- Called by: the page of a job.
-- Index:     job_pkey
-- Answer:    as cancel_job; changed: it is in another state, and nothing was done.
-- Why the lock comes first: between a look and the cancel a worker may claim the job, and to cancel
-- a running job means something else than to cancel a waiting one.
CREATE OR REPLACE FUNCTION livewell.cancel_seen_job(p_id bigint, p_seen text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_state livewell.job_state;
BEGIN
    SELECT j.state INTO v_state FROM livewell.job j WHERE j.id = p_id FOR UPDATE;
    IF FOUND AND v_state::text <> p_seen THEN
        RETURN 'changed';
    END IF;
    RETURN livewell.cancel_job(p_id);
END
$$;
COMMENT ON FUNCTION livewell.cancel_seen_job IS
    'Cancels one job as cancel_job does, if it is still in the state in which it was seen.';
REVOKE ALL ON FUNCTION livewell.cancel_seen_job FROM PUBLIC;
