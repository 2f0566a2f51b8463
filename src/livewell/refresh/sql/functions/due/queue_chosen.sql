-- Lock the keys that were chosen, look at them again, and make jobs of those that are truly stale.
--
-- Called by: dispatch_due, with what choose_refreshes answers: arrays in the order of the jobs.
-- Index:     ledger_pkey, dead_job_refresh_idx, job_unique_key_idx.
-- The planner settings of dispatch_due hold here too: to set them again takes 45 µs.
-- due_at of what was queued is now + 2 minutes: however the job ends, or if it is lost, the key
-- comes back; the unique key prevents a second job (R8).
-- NO KEY UPDATE, so that a key with thousands of subscribers a second, whose row is always
-- share-locked by some, is not skipped for ever; only parking takes FOR UPDATE.
CREATE OR REPLACE FUNCTION livewell.queue_chosen(
    p_types text[], p_keys text[], p_lanes integer[], p_calls integer[], p_now timestamptz)
RETURNS TABLE (inserted integer, merged integer, failed integer, queues text[])
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_locked    record;                 -- nobody else has them: as arrays
    v_ready     boolean[];              -- which of those are stale
    v_types     text[];                 -- and these are
    v_keys      text[];
    v_lanes     integer[];
    v_calls     integer[];
BEGIN
    inserted := 0;
    merged := 0;
    failed := 0;
    queues := '{}';
    SELECT array_agg(x.name ORDER BY x.place) AS types, array_agg(x.key ORDER BY x.place) AS keys,
           array_agg(x.lane ORDER BY x.place) AS lanes, array_agg(x.call ORDER BY x.place) AS calls
    INTO v_locked FROM (
        SELECT g.name, g.key, g.lane, g.call, g.place
        FROM unnest(p_types, p_keys, p_lanes, p_calls)
             WITH ORDINALITY AS g (name, key, lane, call, place)
        JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
        FOR NO KEY UPDATE OF l SKIP LOCKED) x;
    IF v_locked.keys IS NOT NULL THEN
        failed := livewell.fail_dead(v_locked.types, v_locked.keys, p_now);
        v_ready := livewell.ready_keys(v_locked.types, v_locked.keys, p_now);
        SELECT array_agg(g.name ORDER BY g.place), array_agg(g.key ORDER BY g.place),
               array_agg(g.lane ORDER BY g.place), array_agg(g.call ORDER BY g.place)
        INTO v_types, v_keys, v_lanes, v_calls
        FROM unnest(v_locked.types, v_locked.keys, v_locked.lanes, v_locked.calls, v_ready)
             WITH ORDINALITY AS g (name, key, lane, call, ready, place)
        WHERE g.ready;
        UPDATE livewell.ledger l
        SET due_at = p_now + interval '2 minutes',
            wanted_at = CASE g.lane WHEN 0 THEN p_now ELSE l.wanted_at END
        FROM unnest(v_types, v_keys, v_lanes) AS g (name, key, lane)
        WHERE l.data_type = g.name AND l.key = g.key;
        SELECT e.inserted, e.merged, e.queues INTO inserted, merged, queues
        FROM livewell.enqueue_refreshes(v_types, v_keys, v_lanes, v_calls) AS e;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.queue_chosen IS
    'Locks chosen keys, checks them again and queues the refresh of those that are stale.';
REVOKE ALL ON FUNCTION livewell.queue_chosen FROM PUBLIC;
