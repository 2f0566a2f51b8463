-- Attempts whose sender was not heard of again: it may have been killed before it sent, or after.
-- Nobody knows, so that is what is recorded.
--
-- Called by: alerts/deliver.py, at the beginning of each turn.
-- Index:     notification_attempt_pending_idx.
-- One after the other in the order of channels: settle_attempt locks a channel each, and two that
-- lock many must do it in the same order.
CREATE OR REPLACE FUNCTION livewell.expire_attempts(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_id    bigint;
    v_n     integer := 0;
BEGIN
    FOR v_id IN
        SELECT a.id FROM livewell.notification_attempt a
        WHERE a.outcome = 'pending' AND a.lease_until < v_now
        ORDER BY a.channel, a.id LIMIT p_limit
    LOOP
        PERFORM livewell.settle_attempt(v_id, 'unknown', NULL, 'its sender was not heard of again');
        v_n := v_n + 1;
    END LOOP;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.expire_attempts IS
    'Turns attempts whose lease has run out into unknown ones; answers how many.';
REVOKE ALL ON FUNCTION livewell.expire_attempts FROM PUBLIC;
