-- One page of the walk of a scheduled type through its universe: the next keys become jobs of lane 1,
-- and the cursor moves on (R19).
--
-- Called by: refresh/due/walk.py, by the holder of the singleton, once a second while the walk is open.
-- Which:     the run of walk.<type> that is under way; a scheduler has begun it when its slot came.
-- p_next:    NULL. A worker of 0.6.0 gives the slot after this walk: then a walk that is due is begun.
-- Index:     run_running_idx, universe_pkey, ledger_pkey, job_unique_key_idx.
-- Answer:    not_due; walking (look again after wait_seconds: so many may wait and no more); walked; blocked; not_holder; unknown.
-- Never types × keys (contract 9): at most p_most jobs of lane 1 wait in the type's queue, whatever the universe holds. Jobs are counted, not calls (a call of a batch type has up to 1,000), and also those
-- that wait for their next attempt. Of its own queue alone: a pool that nobody serves must not stop the walks of the others. The cursor is a column: a restart goes on where it was.
-- Always lane 1 (contract 8), and within what the rate and the budget leave for the background.
-- A key that is backed off, or was checked after the walk was due, is passed over.
-- Where somebody has paused the schedule the walk is blocked, unless it was asked for.
CREATE OR REPLACE FUNCTION livewell.dispatch_scheduled(p_name text, p_fence bigint, p_type text, p_next timestamptz, p_most integer DEFAULT 1000)
RETURNS TABLE (answer text, inserted integer, merged integer, wait_seconds float8, queues text[])
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_variable
DECLARE
    v_now       timestamptz;
    v_type      livewell.data_type;
    v_run       livewell.run;
    v_room      record;
    v_limit     bigint;
    v_queue     text;
    v_keys      text[];
    v_wanted    text[];
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'refreshes are dispatched on the primary only; this server is a replica' USING ERRCODE = 'LW001';
    END IF;
    inserted := 0;
    merged := 0;
    queues := '{}';
    answer := 'not_holder';
    IF NOT livewell.hold_singleton(p_name, p_fence) THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO v_type FROM livewell.data_type t WHERE t.name = p_type AND t.strategy = 'scheduled';
    IF p_next IS NOT NULL AND v_type.name IS NOT NULL THEN
        PERFORM livewell.begin_walk(p_type, p_next);
    END IF;
    SELECT * INTO v_run FROM livewell.run r
    WHERE r.schedule = 'walk.' || p_type AND r.state = 'running';
    v_now := livewell.now();
    answer := CASE WHEN v_type.name IS NULL THEN 'unknown' WHEN v_run.id IS NULL THEN 'not_due' END;
    IF answer IS NULL AND (livewell.walk_held(v_type) OR NOT v_run.asked AND EXISTS (
        SELECT FROM livewell.schedule s WHERE s.name = v_run.schedule AND s.paused_at IS NOT NULL)) THEN
        answer := 'blocked';
        wait_seconds := 60;
    END IF;
    IF answer IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO v_room FROM livewell.dispatch_room(v_type.upstream, v_now, p_most);
    -- What may wait is bounded; how fast it goes is the claim's to decide.
    v_queue := livewell.refresh_queue(v_type.upstream, v_type.pool);
    v_limit := least(p_most, 1000) - (
        SELECT count(*) FROM livewell.job j WHERE j.queue = v_queue AND j.unique_key IS NOT NULL AND j.held_by IS DISTINCT FROM 'k' AND j.state <> 'running' AND j.lane = 1);
    IF v_room.background_units IS NOT NULL THEN
        v_limit := least(v_limit, CASE WHEN (SELECT l.budget_unit FROM livewell.limiter l WHERE l.name = v_type.upstream) = 'calls' THEN v_room.background_units * v_type.keys_max
                                       ELSE v_room.background_units / livewell.expected_size(v_type.upstream, p_type, v_type.size_estimate) END);
    END IF;
    IF v_limit <= 0 OR v_room.calls = 0 AND v_room.reason IN ('breaker', 'upstream', 'probe', 'budget') THEN
        answer := 'blocked';
        wait_seconds := greatest(coalesce(v_room.wait_seconds, 1), 1);
        RETURN NEXT;
        RETURN;
    END IF;
    v_keys := ARRAY(
        SELECT u.key FROM livewell.universe u
        WHERE u.data_type = p_type AND u.active
          -- without rows it has had no page yet, and the cursor is that of a walk before it
          AND u.key > CASE WHEN v_run.rows_affected IS NULL THEN '' ELSE coalesce(v_type.cron_cursor, '') END
        ORDER BY u.key LIMIT v_limit);
    IF cardinality(v_keys) > 0 THEN
        INSERT INTO livewell.ledger (data_type, key, upstream, status_at) SELECT p_type, k, v_type.upstream, v_now FROM unnest(v_keys) AS k ORDER BY k ON CONFLICT (data_type, key) DO NOTHING;
        PERFORM FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = ANY (v_keys) ORDER BY l.key FOR NO KEY UPDATE;
        PERFORM livewell.fail_dead(array_agg(p_type), array_agg(k), v_now) FROM unnest(v_keys) AS k;
        v_wanted := ARRAY(
            SELECT l.key FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = ANY (v_keys)
              AND coalesce(l.retry_at <= v_now, true) AND coalesce(l.checked_at < v_run.due_at, true) ORDER BY l.key);
        SELECT e.inserted, e.merged, e.queues INTO inserted, merged, queues
        FROM (SELECT array_agg(p_type) AS types, array_agg(k) AS keys, array_agg(1) AS lanes, array_agg(((n - 1) / v_type.keys_max)::integer) AS calls FROM unnest(v_wanted) WITH ORDINALITY AS w (k, n)) g,
             livewell.enqueue_refreshes(g.types, g.keys, g.lanes, g.calls) AS e;
    END IF;
    IF cardinality(v_keys) < v_limit THEN
        answer := 'walked';
        UPDATE livewell.data_type t SET cron_cursor = NULL WHERE t.name = p_type;
    ELSE
        answer := 'walking';
        wait_seconds := 1;
        UPDATE livewell.data_type t SET cron_cursor = v_keys[cardinality(v_keys)] WHERE t.name = p_type;
    END IF;
    PERFORM livewell.count_open_run(v_run.id, h.holder, inserted, answer = 'walked')
    FROM livewell.singleton h WHERE h.name = p_name;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.dispatch_scheduled IS 'Queues the next page of a scheduled type''s walk, on the background lane, and moves its cursor.';
REVOKE ALL ON FUNCTION livewell.dispatch_scheduled FROM PUBLIC;
