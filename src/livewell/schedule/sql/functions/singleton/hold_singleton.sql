-- Lock a singleton for the rest of this transaction, if the term is ours and has not run out.
--
-- Called by: dispatch_due, dispatch_scheduled, finish_run, renew_run; every function that does work
--            under a singleton, first of all. A change of hands waits for this lock, so two terms
--            never work at once (contract 3).
CREATE OR REPLACE FUNCTION livewell.hold_singleton(p_name text, p_fence bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_expires   timestamptz;
BEGIN
    SELECT s.expires_at INTO v_expires FROM livewell.singleton s
    WHERE s.name = p_name AND s.fence = p_fence
    FOR NO KEY UPDATE;
    v_now := livewell.now();
    RETURN coalesce(v_expires > v_now, false);
END
$$;
COMMENT ON FUNCTION livewell.hold_singleton IS
    'Locks a singleton that is ours; false when it is not, or not any more.';
REVOKE ALL ON FUNCTION livewell.hold_singleton FROM PUBLIC;
