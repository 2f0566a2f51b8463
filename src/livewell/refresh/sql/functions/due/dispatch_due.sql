-- The due check of one upstream: what is stale and watched becomes jobs, as far as its limits allow for the next two seconds; what nobody watches is parked.
--
-- Called by: refresh/due/check.py, by the holder of the singleton refresh.due: when nudged, when something becomes due, and every second.
-- Cost:      100,000 sessions, 300,000 subscriptions, 50,000 keys, one of them with 100,000 viewers, 500 due: 26 ms under a rate of 300 a minute, of which counting viewers is 16; 68 ms when all 500
--            become jobs. The same with ten times the keys (measured on two busy cores: a sum over a million rows took 137 ms there).
-- Index:     ledger_class_idx, ledger_due_idx, ledger_pkey, subscription_key_idx, viewer_session_pkey, job_unique_key_idx, dead_job_refresh_idx.
-- Answer:    dispatched; blocked (reason, wait_seconds); paused; unknown; not_holder, if the term is not ours any more: nothing was done. wait_seconds: when it is worth looking again.
--
-- Order (X2): score = viewers · (seconds waited + 10), lane 0 before lane 1; the highest goes, of everything that is due. Under overload a key with v viewers is refreshed about v times as often as
-- one with one viewer, and nothing waits for ever. due_candidates gives a page of twice what can go; up to that many are due the order is exact, beyond it whatever goes has more than half the score of
-- whatever stays. The bound: with C calls a second, D keys due and V their viewers in all (at most 1,000 counted for a key), a key with v viewers waits no longer than
--     2 · (D + 4 · V / v) / C seconds      (2 · V / v, where the page holds all that is due).
-- Proof: let it wait W. In the second half its score is at least v · W/2, so a key j that goes before it has a score above v · W/4: it has waited at least v·W/(4·v_j) - 10 s since it was last
-- refreshed. If v_j is at most v·W/80 that is at least v·W/(8·v_j), so j goes at most 1 + 4·v_j/v times in that half; if v_j is more, j goes at most once in its time to live, W/(2·ttl) < 4·v_j/v times
-- for a time to live of ten seconds or more. All together at most D + 4·V/v calls in W/2 seconds, and C·W/2 were made.
-- (v as its class says. A class that is too high costs a place in one page, in which it is corrected; one that is too low is corrected by recount_viewers, within keys / 250 seconds.)
-- Why 10 seconds: what many watch is served soon after it goes stale, without asking those who wait much longer for it. tests/model/test_refresh_fairness.py, 10,000 keys, 167 calls a second wanted and 10
-- had: with 0.1 s 33 % of viewers see fresh and the longest wait is 1,590 s; with 10 s 42 % and 1,730 s; "most viewers first" 62 %, and 9,400 keys are never refreshed.
--
-- Contracts: 8, the lane is decided here: a scheduled type or a prefetched key is never lane 0. 12, every page is bounded. 4, a type that cannot be served (paused, parked, no queue, no worker for its pool, broken rule)
-- is set aside and changes nothing for the others.
-- Half open, what is queued is the probe (R13): a key that is not failing and had data, so that nobody's bad key keeps the others waiting; keys that are failing only if there is no other, from failing_until on.
-- due_at of what was dispatched is now + 2 minutes: however the job ends, or if it is lost, the key comes back; the unique key prevents a second job (R8).
-- NO KEY UPDATE for what is dispatched, so that a key with thousands of subscribers a second, whose row is always share-locked by some, is not skipped for ever; only parking takes FOR UPDATE.
CREATE OR REPLACE FUNCTION livewell.dispatch_due(p_name text, p_fence bigint, p_upstream text, p_page integer DEFAULT 1000, p_oldest integer DEFAULT 1500, p_newest integer DEFAULT 250)
RETURNS TABLE (answer text, inserted integer, merged integer, parked integer, failed integer, due integer, wait_seconds float8, reason text, queues text[])
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
    v_size      integer;                -- of the page: twice what can go, as some of it turns out to be fresh, failing or watched by nobody
    v_page      record;                 -- the candidates, as arrays
    v_probes    boolean[];              -- half open: which of them may be the probe
    v_c         record;
    v_used      integer := 0;           -- calls so far
    v_units     bigint := 0;            -- of the budget, so far
    v_by_call   boolean;                -- the budget counts calls
    v_unit      bigint;
    v_open      text[] := '{}';         -- batch types with a call that is not full, its number, and its free places
    v_call      integer[] := '{}';
    v_free      integer[] := '{}';
    v_place     integer;
    v_types     text[] := '{}';         -- chosen, in order
    v_keys      text[] := '{}';
    v_lanes     integer[] := '{}';
    v_calls     integer[] := '{}';
    v_left      integer := 0;           -- wanted to go, and could not
    v_set_types text[] := '{}';         -- cannot be served now
    v_set_keys  text[] := '{}';
    v_set_for   integer[] := '{}';      -- and for how many seconds
    v_locked    record;
    v_ready     boolean[];
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'refreshes are dispatched on the primary only; this server is a replica' USING ERRCODE = 'LW001';
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
    v_by_call := coalesce((SELECT l.budget_unit = 'calls' FROM livewell.limiter l WHERE l.name = p_upstream), false);
    v_size := least(p_oldest, greatest(2 * v_room.calls * (SELECT max(t.keys_max) FROM livewell.data_type t WHERE t.upstream = p_upstream), p_newest));
    SELECT array_agg(c.data_type) AS types, array_agg(c.key) AS keys, array_agg(c.due_at) AS dues, array_agg(c.viewers) AS viewers, array_agg(c.wanted_at) AS wanted
    INTO v_page FROM livewell.due_candidates(p_upstream, v_now, v_size, p_newest, v_room.calls) AS c;
    due := coalesce(cardinality(v_page.keys), 0);
    v_probes := livewell.may_probe(p_upstream, v_page.types, v_page.keys, v_page.viewers, v_now);
    FOR v_c IN
        WITH types AS MATERIALIZED (
            SELECT t.*, livewell.expected_size(t.upstream, t.name, t.size_estimate) AS size FROM livewell.data_type t WHERE t.name = ANY (v_page.types)
        )
        SELECT g.name, g.key, t.keys_max, t.size, CASE WHEN t.strategy = 'scheduled' OR g.viewers = 0 THEN 1 ELSE 0 END AS lane,
               t.name IS NOT NULL AND t.paused_at IS NULL AND t.parked_reason IS NULL AND q.name IS NOT NULL AS can, q.name = ANY (v_room.stalled) AS stalled
        FROM unnest(v_page.types, v_page.keys, v_page.dues, v_page.viewers, v_page.wanted) WITH ORDINALITY AS g (name, key, due_at, viewers, wanted_at, place)
        LEFT JOIN types t ON t.name = g.name
        LEFT JOIN livewell.queue q ON q.name = 'refresh.' || t.upstream || coalesce('.' || t.pool, '')
        WHERE (g.viewers > 0 OR t.prefetch AND g.wanted_at > v_now - interval '1 day') AND coalesce(v_probes[g.place], true)
        ORDER BY 5, g.viewers * (extract(epoch FROM v_now - g.due_at) + 10) DESC, g.due_at
    LOOP
        IF NOT v_c.can OR v_c.stalled THEN
            v_set_types := v_set_types || v_c.name;
            v_set_keys := v_set_keys || v_c.key;
            v_set_for := v_set_for || (CASE WHEN v_c.can THEN 15 ELSE 300 END);
            CONTINUE;
        END IF;
        v_place := CASE WHEN v_c.keys_max > 1 THEN array_position(v_open, v_c.name || v_c.lane) END;
        v_unit := CASE WHEN NOT v_by_call THEN v_c.size WHEN v_free[v_place] > 0 THEN 0 ELSE 1 END;
        IF v_units + v_unit > (CASE v_c.lane WHEN 0 THEN v_room.units ELSE v_room.background_units END) THEN
            v_left := v_left + 1;
            reason := 'budget';
            CONTINUE;
        END IF;
        IF v_place IS NULL OR v_free[v_place] = 0 THEN
            IF v_used >= (CASE v_c.lane WHEN 0 THEN v_room.calls ELSE v_room.background_calls END) THEN
                v_left := v_left + 1;
                EXIT WHEN v_c.lane = 1 OR NOT (0 < ANY (v_free));      -- there is no call left, nor a place in one
                CONTINUE;
            END IF;
            v_used := v_used + 1;
            IF v_c.keys_max > 1 THEN
                v_place := coalesce(v_place, cardinality(v_open) + 1);
                v_open[v_place] := v_c.name || v_c.lane;
                v_call[v_place] := v_used;
                v_free[v_place] := v_c.keys_max;
            END IF;
        END IF;
        IF v_place IS NOT NULL THEN
            v_free[v_place] := v_free[v_place] - 1;
        END IF;
        v_units := v_units + v_unit;
        v_types := v_types || v_c.name;
        v_keys := v_keys || v_c.key;
        v_lanes := v_lanes || v_c.lane;
        v_calls := v_calls || coalesce(v_call[v_place], v_used);
    END LOOP;

    IF cardinality(v_set_keys) > 0 THEN
        UPDATE livewell.ledger l SET due_at = v_now + g.seconds * interval '1 second' FROM unnest(v_set_types, v_set_keys, v_set_for) AS g (name, key, seconds)
        WHERE l.data_type = g.name AND l.key = g.key
          AND l.ctid = ANY (ARRAY(SELECT s.ctid FROM unnest(v_set_types, v_set_keys) AS k (name, key) JOIN livewell.ledger s ON s.data_type = k.name AND s.key = k.key FOR NO KEY UPDATE OF s SKIP LOCKED));
    END IF;

    -- Lock what was chosen, then look at it again.
    SELECT array_agg(x.name ORDER BY x.place) AS types, array_agg(x.key ORDER BY x.place) AS keys, array_agg(x.lane ORDER BY x.place) AS lanes, array_agg(x.call ORDER BY x.place) AS calls
    INTO v_locked FROM (
        SELECT g.name, g.key, g.lane, g.call, g.place
        FROM unnest(v_types, v_keys, v_lanes, v_calls) WITH ORDINALITY AS g (name, key, lane, call, place) JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
        FOR NO KEY UPDATE OF l SKIP LOCKED) x;
    IF v_locked.keys IS NOT NULL THEN
        failed := livewell.fail_dead(v_locked.types, v_locked.keys, v_now);
        v_ready := livewell.ready_keys(v_locked.types, v_locked.keys, v_now);
        SELECT array_agg(g.name ORDER BY g.place), array_agg(g.key ORDER BY g.place), array_agg(g.lane ORDER BY g.place), array_agg(g.call ORDER BY g.place)
        INTO v_types, v_keys, v_lanes, v_calls
        FROM unnest(v_locked.types, v_locked.keys, v_locked.lanes, v_locked.calls, v_ready) WITH ORDINALITY AS g (name, key, lane, call, ready, place) WHERE g.ready;
        UPDATE livewell.ledger l SET due_at = v_now + interval '2 minutes', wanted_at = CASE g.lane WHEN 0 THEN v_now ELSE l.wanted_at END
        FROM unnest(v_types, v_keys, v_lanes) AS g (name, key, lane) WHERE l.data_type = g.name AND l.key = g.key;
        SELECT e.inserted, e.merged, e.queues INTO inserted, merged, queues FROM livewell.enqueue_refreshes(v_types, v_keys, v_lanes, v_calls) AS e;
    END IF;

    -- Whom nobody watches. Last, as a subscriber of such a key waits for this lock until we commit.
    SELECT coalesce(livewell.park_keys(array_agg(g.name), array_agg(g.key), v_now), 0) INTO parked FROM (
        SELECT g.name, g.key FROM unnest(v_page.types, v_page.keys, v_page.viewers, v_page.wanted) AS g (name, key, viewers, wanted_at) LEFT JOIN livewell.data_type t ON t.name = g.name
        WHERE g.viewers = 0 AND NOT (coalesce(t.prefetch, false) AND coalesce(g.wanted_at > v_now - interval '1 day', false)) LIMIT 1000) g
    HAVING count(*) > 0;
    parked := coalesce(parked, 0);

    -- When to look again.
    IF v_left > 0 THEN
        reason := coalesce(reason, 'rate');
        wait_seconds := coalesce(wait_seconds, 1);
    ELSIF due >= least(v_size, p_newest) THEN
        wait_seconds := 0.02;
    ELSE
        SELECT extract(epoch FROM l.due_at - v_now) INTO wait_seconds FROM livewell.ledger l WHERE l.upstream = p_upstream AND l.due_at > v_now ORDER BY l.due_at LIMIT 1;
        wait_seconds := least(wait_seconds, 60);
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.dispatch_due IS 'Queues what is stale and watched, by viewers and waiting, within the limits of one upstream; parks what nobody watches.';
REVOKE ALL ON FUNCTION livewell.dispatch_due FROM PUBLIC;
