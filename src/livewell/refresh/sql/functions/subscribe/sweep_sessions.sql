-- Remove sessions that were not seen for six minutes, their subscriptions, and what these counted
-- against their users.
--
-- Called by: refresh/due/check.py, every minute, until it answers less than p_limit. Nothing
--            depends on it: ghosts do not count anyway (R3).
-- Index:     viewer_session_seen_idx, subscription_pkey.
-- Why SKIP LOCKED: a session that is locked has just shown a sign of life, or is closing. Why six
-- minutes: one that comes back at the last moment finds itself still there.
-- Locks: session, then viewer rows in order, then shares of sessions. The subscriptions of a
-- deleted session cannot grow meanwhile: subscribe locks the session first (race-tested).
CREATE OR REPLACE FUNCTION livewell.sweep_sessions(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_before    timestamptz := v_now - interval '6 minutes';
    v_gone      uuid[];
    v_origins   text[];
    v_users     text[];
    v_counts    integer[];
BEGIN
    WITH gone AS (
        DELETE FROM livewell.viewer_session s
        WHERE s.id = ANY (ARRAY(
            SELECT o.id FROM livewell.viewer_session o
            WHERE o.seen_at < v_before ORDER BY o.seen_at LIMIT least(greatest(p_limit, 0), 1000)
            FOR UPDATE SKIP LOCKED))
        RETURNING s.id, s.origin
    )
    SELECT coalesce(array_agg(g.id), '{}'), array_agg(g.origin) INTO v_gone, v_origins FROM gone g;
    WITH ended AS (
        DELETE FROM livewell.subscription b WHERE b.session_id = ANY (v_gone) RETURNING b.user_id
    ), counted AS (
        SELECT e.user_id, count(*) AS n FROM ended e GROUP BY e.user_id ORDER BY e.user_id
    )
    SELECT array_agg(c.user_id), array_agg(c.n) INTO v_users, v_counts FROM counted c;
    PERFORM FROM livewell.viewer w
    WHERE w.user_id = ANY (v_users) ORDER BY w.user_id FOR NO KEY UPDATE;
    UPDATE livewell.viewer w SET subscriptions = greatest(w.subscriptions - c.n, 0)
    FROM unnest(v_users, v_counts) AS c (user_id, n)
    WHERE w.user_id = c.user_id;
    -- Rows of users who have nothing left, anonymous ones above all. Whoever subscribes at this
    -- moment waits, and makes the row anew.
    DELETE FROM livewell.viewer w
    WHERE w.user_id = ANY (v_users) AND w.subscriptions = 0
      AND coalesce(w.cold_minute < v_now - interval '5 minutes', true);
    PERFORM livewell.free_sessions(v_origins);
    RETURN cardinality(v_gone);
END
$$;
COMMENT ON FUNCTION livewell.sweep_sessions IS
    'Deletes at most p_limit sessions that are long gone; answers how many.';
REVOKE ALL ON FUNCTION livewell.sweep_sessions FROM PUBLIC;
