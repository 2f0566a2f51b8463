-- Keep the lease of a run that takes longer, until its timeout.
--
-- Called by: schedule/run.py, every third of the lease.
-- False:     the term is over (it had run out, or somebody else has it), or the timeout is: nothing
--            that the caller still does counts.
-- Not acquire_singleton(): that one gives a new term to whoever comes late, and this run must not
-- live on in it.
CREATE OR REPLACE FUNCTION livewell.renew_run(p_run bigint, p_fence bigint, p_lease interval)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    -- for a handler that was told to stop to end, and for its end to be written
    c_grace CONSTANT interval := '30 seconds';
    v_now   timestamptz;
    v_name  text;
    v_until timestamptz;
BEGIN
    SELECT r.schedule, r.started_at + s.timeout + c_grace INTO v_name, v_until
    FROM livewell.run r
    JOIN livewell.schedule s ON s.name = r.schedule
    WHERE r.id = p_run AND r.fence = p_fence AND r.state = 'running';
    IF v_name IS NULL OR NOT livewell.hold_singleton('schedule.' || v_name, p_fence) THEN
        RETURN false;
    END IF;
    v_now := livewell.now();
    IF v_until <= v_now THEN
        RETURN false;
    END IF;
    UPDATE livewell.singleton g
    SET renewed_at = v_now, expires_at = least(v_now + p_lease, v_until)
    WHERE g.name = 'schedule.' || v_name;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.renew_run IS
    'Renews the lease of a run within its timeout; false when it is over.';
REVOKE ALL ON FUNCTION livewell.renew_run FROM PUBLIC;
