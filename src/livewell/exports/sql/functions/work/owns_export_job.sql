-- True if this worker holds the job under this fence; it then stays so until the transaction ends.
--
-- Called by: begin_export, fail_export, plan_export_file, step_export, each after its other locks:
--            the job is locked last, as where it is finished.
-- Index:     job_pkey. KEY SHARE: heartbeats and progress of the job do not wait; recovery does.
CREATE OR REPLACE FUNCTION livewell.owns_export_job(p_worker bigint, p_job bigint, p_fence bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM FROM livewell.job j
    WHERE j.id = p_job AND j.fence = p_fence AND j.worker = p_worker
    FOR KEY SHARE;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.owns_export_job IS 'Whether a worker still holds a job under its fence.';
REVOKE ALL ON FUNCTION livewell.owns_export_job FROM PUBLIC;
