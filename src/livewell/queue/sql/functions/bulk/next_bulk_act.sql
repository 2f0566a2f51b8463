-- The act on many whose turn it is: of those that nobody works, the one that was longest not tried.
--
-- Called by: step_bulk_act; workers, who step it next and say what went wrong (postpone_bulk_act).
-- Index:     bulk_act_running_idx; acts that run are few.
-- Answer:    NULL: no act runs, other workers are at all of them, or those that are left rest.
-- Its row is locked until the end of the transaction.
CREATE OR REPLACE FUNCTION livewell.next_bulk_act()
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_id    bigint;
BEGIN
    SELECT b.id INTO v_id FROM livewell.bulk_act b
    WHERE b.state = 'running' AND (b.rest_until IS NULL OR b.rest_until <= v_now)
    ORDER BY b.stepped_at, b.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION livewell.next_bulk_act IS 'The act on many whose turn it is, locked.';
REVOKE ALL ON FUNCTION livewell.next_bulk_act FROM PUBLIC;
