-- Delete what nobody wants any more: ledger rows of keys that never had a value, viewers without a
-- session, budgets and empty shares of strangers, counts that are old. One page of each; answers
-- how many rows went.
--
-- Called by: housekeeping, every hour, until it answers 0.
-- A ledger row goes when nobody watched, demanded or answered it for a day, nobody set a time to
-- live for it, no schedule walks it, no job is under way and no back-off holds it. Index:
-- ledger_empty_idx.
-- Lock, then look again, in statements of their own. FOR UPDATE is the lock that a subscriber's KEY
-- SHARE and a reader's NO KEY UPDATE conflict with: who holds one makes us skip the row; who waits
-- for us finds it gone and makes it anew (unpark, demand_refresh, set_ttl); whose subscription was
-- committed before our lock is seen by the second look (race-tested).
CREATE OR REPLACE FUNCTION livewell.prune_refresh(p_stat_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_before    timestamptz := v_now - interval '1 day';
    v_types     text[];
    v_keys      text[];
    v_users     text[];
    v_n         integer;
    v_all       integer := 0;
BEGIN
    SELECT array_agg(x.data_type), array_agg(x.key) INTO v_types, v_keys FROM (
        SELECT l.data_type, l.key FROM livewell.ledger l
        WHERE l.version = 0 AND l.status_at < v_before AND l.fetched_at IS NULL
          AND l.ttl_override IS NULL
          AND coalesce(
              greatest(l.demanded_at, l.wanted_at, l.checked_at, l.tried_at) < v_before, true)
            AND coalesce(l.retry_at < v_now, true)
          AND NOT EXISTS (
              SELECT FROM livewell.subscription b WHERE b.data_type = l.data_type AND b.key = l.key)
          AND NOT EXISTS (
              SELECT FROM livewell.universe u
              WHERE u.data_type = l.data_type AND u.key = l.key AND u.active)
        ORDER BY l.status_at LIMIT p_limit FOR UPDATE OF l SKIP LOCKED) x;
    DELETE FROM livewell.ledger l USING unnest(v_types, v_keys) AS g (name, key)
    WHERE l.data_type = g.name AND l.key = g.key AND l.version = 0
      AND coalesce(greatest(l.demanded_at, l.wanted_at) < v_before, true)
      AND NOT EXISTS (
          SELECT FROM livewell.subscription b WHERE b.data_type = g.name AND b.key = g.key)
      AND NOT EXISTS (
          SELECT FROM livewell.universe u WHERE u.data_type = g.name AND u.key = g.key AND u.active)
      AND NOT EXISTS (SELECT FROM livewell.job j JOIN livewell.data_type t ON t.name = g.name
                      WHERE j.queue = livewell.refresh_queue(t.upstream, t.pool)
                        AND j.unique_key = g.name || ':' || g.key);
    GET DIAGNOSTICS v_all = ROW_COUNT;
    DELETE FROM livewell.refresh_event e USING unnest(v_types, v_keys) AS g (name, key)
    WHERE e.data_type = g.name AND e.key = g.key
      AND NOT EXISTS (
          SELECT FROM livewell.ledger l WHERE l.data_type = g.name AND l.key = g.key);

    SELECT array_agg(x.user_id) INTO v_users FROM (
        SELECT w.user_id FROM livewell.viewer w
        WHERE w.subscriptions = 0 AND coalesce(w.cold_minute < v_now - interval '5 minutes', true)
          AND NOT EXISTS (SELECT FROM livewell.viewer_session s WHERE s.user_id = w.user_id)
        LIMIT p_limit FOR UPDATE OF w SKIP LOCKED) x;
    DELETE FROM livewell.viewer w
    WHERE w.user_id = ANY (v_users) AND w.subscriptions = 0
      AND NOT EXISTS (SELECT FROM livewell.viewer_session s WHERE s.user_id = w.user_id);
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;

    DELETE FROM livewell.cold_budget b
    WHERE b.name = ANY (ARRAY(
        SELECT o.name FROM livewell.cold_budget o
        WHERE o.minute < v_now - interval '5 minutes' LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;

    DELETE FROM livewell.session_share h
    WHERE h.name = ANY (ARRAY(
        SELECT o.name FROM livewell.session_share o
        WHERE o.sessions = 0 LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;

    DELETE FROM livewell.refresh_count c USING (
        SELECT o.hour, o.data_type, o.outcome FROM livewell.refresh_count o
        WHERE o.hour < v_now - make_interval(days => p_stat_days) ORDER BY o.hour LIMIT p_limit) x
    WHERE c.hour = x.hour AND c.data_type = x.data_type AND c.outcome = x.outcome;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_all + v_n;
END
$$;
COMMENT ON FUNCTION livewell.prune_refresh IS
    'Deletes a page of ledger rows, viewers, budgets and counts that nobody needs; answers how '
    'many.';
REVOKE ALL ON FUNCTION livewell.prune_refresh FROM PUBLIC;
