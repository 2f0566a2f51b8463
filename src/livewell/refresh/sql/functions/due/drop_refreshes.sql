-- End waiting refreshes that nobody wants any more, before they are called or chosen as a probe: a
-- job is made because somebody looks, and that one may have gone while it waited for a breaker, a
-- limit or its next attempt (H1).
--
-- Called by: refresh/due/check.py, by the holder of the singleton refresh.due, every 5 seconds for
--            each upstream. Answers how many were ended.
-- Wanted is:  whoever looks now (a session seen within five minutes), whatever a reader demanded
--             within seven (the longest wait is five, and for two minutes a demand that is on its
--             way is not written again), a scheduled type (its walk has passed the key already),
--             the background lane, and for five minutes what an operator put back by hand (tried
--             before, and now not yet).
-- Not on the way of a claim: jobs that were made within ten seconds are left alone, and as a rule
-- none is older. Measured on two busy cores: nothing waits 0.3 ms, 1,000 watched jobs wait 14 ms,
-- 1,000 are ended 200 to 300 ms.
-- The permit is not touched, the attempt does not count, and the upstream is not blamed. The key is
-- due now, so that the next due check parks it, or queues it for who came meanwhile.
-- Index:      job_unique_key_idx, ledger_pkey, subscription_key_idx, viewer_session_pkey.
-- Locks: ledger, then job, both SKIP LOCKED: a store locks them the other way round, and a demand
-- waits for us with its ledger row; who never waits is in no deadlock. Lock, then look again.
CREATE OR REPLACE FUNCTION livewell.drop_refreshes(p_upstream text, p_limit integer DEFAULT 1000)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    c_looked    CONSTANT integer := 5000;
    v_now       timestamptz := livewell.now();
    v_seen      timestamptz := v_now - interval '5 minutes';
    v_demanded  timestamptz := v_now - interval '7 minutes';
    v_queues    text[] := livewell.list_refresh_queues(p_upstream);
    v_old       bigint[];               -- jobs that wait for longer than a moment
    v_types     text[];
    v_keys      text[];
    v_ids       bigint[];
BEGIN
    v_old := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.queue = ANY (v_queues) AND j.unique_key IS NOT NULL
          AND j.held_by IS DISTINCT FROM 'k' AND j.state <> 'running' AND j.lane = 0
          AND j.kind = 'livewell.refresh'
          AND j.created_at < v_now - interval '10 seconds'
          AND (j.attempt > 0 OR j.last_error IS NULL OR j.run_at < v_seen)
        LIMIT c_looked);
    IF cardinality(v_old) = 0 THEN
        RETURN 0;
    END IF;
    SELECT array_agg(x.id), array_agg(x.data_type), array_agg(x.key)
    INTO v_ids, v_types, v_keys FROM (
        SELECT j.id, l.data_type, l.key
        FROM unnest(v_old) AS o (id) JOIN livewell.job j ON j.id = o.id
        JOIN livewell.data_type t ON t.name = split_part(j.unique_key, ':', 1)
            AND t.strategy <> 'scheduled'
        JOIN livewell.ledger l ON l.data_type = t.name AND l.key = j.group_key
        WHERE coalesce(l.demanded_at < v_demanded, true)
          AND NOT EXISTS (
              SELECT FROM livewell.subscription b
              JOIN livewell.viewer_session v ON v.id = b.session_id
              WHERE b.data_type = l.data_type AND b.key = l.key AND v.seen_at > v_seen)
        LIMIT p_limit FOR NO KEY UPDATE OF l SKIP LOCKED) x;
    SELECT array_agg(x.id), array_agg(x.name), array_agg(x.key) INTO v_ids, v_types, v_keys FROM (
        SELECT j.id, g.name, g.key
        FROM unnest(v_ids, v_types, v_keys) AS g (id, name, key)
        JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
        JOIN livewell.job j ON j.id = g.id
        WHERE j.state <> 'running' AND j.lane = 0 AND coalesce(l.demanded_at < v_demanded, true)
          AND NOT EXISTS (
              SELECT FROM livewell.subscription b
              JOIN livewell.viewer_session v ON v.id = b.session_id
              WHERE b.data_type = g.name AND b.key = g.key AND v.seen_at > v_seen)
        FOR UPDATE OF j SKIP LOCKED) x;
    IF v_ids IS NULL THEN
        RETURN 0;
    END IF;
    UPDATE livewell.ledger l SET due_at = greatest(v_now, l.retry_at)
    FROM unnest(v_types, v_keys) AS g (name, key)
    WHERE l.data_type = g.name AND l.key = g.key AND l.due_at IS NOT NULL;
    PERFORM livewell.settle_jobs(
        v_ids, array_agg('cancelled'::text), array_agg(NULL::text),
        array_agg('nobody wants it any more'::text), array_agg(NULL::float8))
    FROM unnest(v_ids) AS d;
    RETURN cardinality(v_ids);
END
$$;
COMMENT ON FUNCTION livewell.drop_refreshes IS
    'Ends refreshes that wait though nobody wants them any more; answers how many.';
REVOKE ALL ON FUNCTION livewell.drop_refreshes FROM PUBLIC;
