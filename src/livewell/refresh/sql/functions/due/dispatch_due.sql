-- The due check of one upstream: what is stale and watched becomes jobs, as far as its limits allow
-- for the next two seconds; what nobody watches is parked.
--
-- Called by: refresh/due/check.py, by the holder of the singleton refresh.due: when nudged, when
--            something becomes due, and every second.
-- Steps:     dispatch_room (how much may go), due_candidates (a page of what is due),
--            choose_refreshes (which of it goes, and in which order), queue_chosen (lock, look
--            again, make jobs), park_unwatched.
-- Cost:      100,000 sessions, 300,000 subscriptions, 50,000 keys, one of them with 100,000
--            viewers, 500 due: 26 ms under a rate of 300 a minute, of which counting viewers is 16;
--            68 ms when all 500 become jobs. The same with ten times the keys (measured on two busy
--            cores: a sum over a million rows took 137 ms there).
-- Index:     ledger_class_idx, ledger_due_idx, ledger_pkey, subscription_key_idx,
--            viewer_session_pkey, job_unique_key_idx, dead_job_refresh_idx.
-- Answer:    dispatched; blocked (reason, wait_seconds); paused; unknown; not_holder, if the term
--            is not ours any more: nothing was done. wait_seconds: when it is worth looking again.
-- Contracts: 8, the lane is decided in order_refreshes: a scheduled type or a prefetched key is
--            never lane 0. 12, every page is bounded. 4, a type that cannot be served (paused,
--            parked, no queue, no worker for its pool, broken rule) is set aside and changes
--            nothing for the others.
CREATE OR REPLACE FUNCTION livewell.dispatch_due(
    p_name text, p_fence bigint, p_upstream text, p_page integer DEFAULT 1000,
    p_oldest integer DEFAULT 1500, p_newest integer DEFAULT 250)
RETURNS TABLE (
    answer text, inserted integer, merged integer, parked integer, failed integer, due integer,
    wait_seconds float8, reason text, queues text[])
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
    v_now       timestamptz;
    v_upstream  livewell.upstream;
    v_room      record;
    -- Of the page: twice what can go, as some of it turns out to be fresh, failing or watched by
    -- nobody.
    v_size      integer;
    v_page      record;         -- the candidates, as arrays
    v_chosen    record;         -- of those: what goes, as arrays
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'refreshes are dispatched on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    answer := 'not_holder';
    inserted := 0;
    merged := 0;
    parked := 0;
    failed := 0;
    due := 0;
    queues := '{}';
    IF NOT livewell.hold_singleton(p_name, p_fence) THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO v_upstream FROM livewell.upstream u WHERE u.name = p_upstream;
    IF NOT FOUND OR v_upstream.paused_at IS NOT NULL THEN
        answer := CASE WHEN v_upstream.name IS NULL THEN 'unknown' ELSE 'paused' END;
        wait_seconds := 60;
        RETURN NEXT;
        RETURN;
    END IF;
    v_now := livewell.now();
    SELECT * INTO v_room FROM livewell.dispatch_room(p_upstream, v_now, p_page);
    reason := v_room.reason;
    wait_seconds := v_room.wait_seconds;
    IF v_room.calls <= 0 THEN
        answer := 'blocked';
        RETURN NEXT;
        RETURN;
    END IF;

    answer := 'dispatched';
    v_size := least(p_oldest, greatest(p_newest, 2 * v_room.calls * (
        SELECT max(t.keys_max) FROM livewell.data_type t WHERE t.upstream = p_upstream)));
    SELECT array_agg(c.data_type) AS types, array_agg(c.key) AS keys, array_agg(c.due_at) AS dues,
           array_agg(c.viewers) AS viewers, array_agg(c.wanted_at) AS wanted
    INTO v_page
    FROM livewell.due_candidates(p_upstream, v_now, v_size, p_newest, v_room.calls) AS c;
    due := coalesce(cardinality(v_page.keys), 0);
    SELECT * INTO v_chosen FROM livewell.choose_refreshes(
        p_upstream, v_page.types, v_page.keys, v_page.dues, v_page.viewers, v_page.wanted,
        v_room.calls,
        v_room.background_calls, v_room.units, v_room.background_units, v_room.stalled, v_now);
    SELECT q.inserted, q.merged, q.failed, q.queues INTO inserted, merged, failed, queues
    FROM livewell.queue_chosen(
        v_chosen.types, v_chosen.keys, v_chosen.lanes, v_chosen.calls, v_now) AS q;
    -- Last, as a subscriber of such a key waits for this lock until we commit.
    parked := livewell.park_unwatched(
        v_page.types, v_page.keys, v_page.viewers, v_page.wanted, v_now);

    -- When to look again.
    reason := coalesce(v_chosen.reason, reason);
    IF v_chosen.left_over > 0 THEN
        reason := coalesce(reason, 'rate');
        wait_seconds := coalesce(wait_seconds, 1);
    ELSIF due >= least(v_size, p_newest) THEN
        wait_seconds := 0.02;
    ELSE
        SELECT extract(epoch FROM l.due_at - v_now) INTO wait_seconds FROM livewell.ledger l
        WHERE l.upstream = p_upstream AND l.due_at > v_now ORDER BY l.due_at LIMIT 1;
        wait_seconds := least(wait_seconds, 60);
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.dispatch_due IS
    'Queues what is stale and watched, by viewers and waiting, within the limits of one upstream; '
    'parks what nobody watches.';
REVOKE ALL ON FUNCTION livewell.dispatch_due FROM PUBLIC;
