-- Run a delayed job now instead of at its time.
--
-- Called by: act_on_page; CLI `jobs retry`, POST /v1/jobs/{id}/retry, the dashboard; clients.
CREATE OR REPLACE FUNCTION livewell.hasten_job(p_id bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.job j
    SET state = 'ready', run_at = v_now,
        rank = (extract(epoch FROM v_now) * 1000)::bigint - j.priority * 60000
    WHERE j.id = p_id AND j.state = 'delayed';
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.hasten_job IS
    'Makes one delayed job ready at once; false when it was not delayed.';
REVOKE ALL ON FUNCTION livewell.hasten_job FROM PUBLIC;
