-- Keys by type and verdict, subscriptions by type, sessions and viewers: counted while they are
-- few, estimated from some of the pages when they are many.
--
-- Called by: state_refresh, at most every ten seconds.
-- Cost:      about 40 pages of the ledger, or 1,700 keys (a verdict takes 10 µs), 200 of the
--            subscriptions and of the sessions where there are more than 5,000 of them.
-- Index:     viewer_session_seen_idx.
-- A key is followed while it has a due_at: it is watched, or was until the due check noticed.
-- Verdicts are those of followed keys; of others it does not matter how old they are.
-- viewed: what present viewers look at by verdict, each key weighed by its viewers; a sample of at
-- most 500 looks, so only its shares mean something.
-- quiet: of a type's followed keys, those that nothing has happened to for a minute and that are
-- not fresh.
CREATE OR REPLACE FUNCTION livewell.sample_refresh(p_now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_subscriptions CONSTANT integer := 5000;
    c_sessions      CONSTANT integer := 5000;
    v_many          boolean;
    v_ledger        record;
    v_subscriptions record;
    v_session_pages record;
    v_keys          jsonb;
    v_watched       jsonb;
    v_sessions      bigint;
    v_viewers       bigint;
BEGIN
    SELECT * INTO v_ledger FROM livewell.table_pages('livewell.ledger', 40);
    -- At 100 % every page is read: the same as a count.
    SELECT jsonb_agg(jsonb_build_array(
        g.data_type, g.verdict, round(g.n * 100 / v_ledger.percent),
        round(g.quiet * 100 / v_ledger.percent)))
    INTO v_keys
    FROM (
        SELECT x.data_type, x.verdict, count(*) AS n,
               count(*) FILTER (
                   WHERE x.verdict NOT IN ('fresh', 'unverifiable', 'parked')
                     AND x.status_at < p_now - interval '1 minute') AS quiet
        FROM (
            SELECT l.data_type, l.status_at,
                   CASE
                       WHEN l.due_at IS NULL THEN 'parked'
                       ELSE livewell.verdict(t, l, p_now)
                   END AS verdict
            FROM livewell.ledger l TABLESAMPLE SYSTEM (v_ledger.percent) REPEATABLE (7601)
            JOIN livewell.data_type t ON t.name = l.data_type) x
        GROUP BY x.data_type, x.verdict) g;
    SELECT jsonb_agg(jsonb_build_array(g.data_type, g.n)),
           coalesce(sum(g.n) = c_subscriptions, false)
    INTO v_watched, v_many
    FROM (
        SELECT x.data_type, count(*) AS n
        FROM (SELECT s.data_type FROM livewell.subscription s LIMIT c_subscriptions) x
        GROUP BY x.data_type) g;
    IF v_many THEN
        SELECT * INTO v_subscriptions FROM livewell.table_pages('livewell.subscription', 200);
        SELECT jsonb_agg(jsonb_build_array(g.data_type, round(g.n * 100 / v_subscriptions.percent)))
        INTO v_watched
        FROM (
            SELECT s.data_type, count(*) AS n
            FROM livewell.subscription s TABLESAMPLE SYSTEM (
                v_subscriptions.percent) REPEATABLE (7601)
            GROUP BY s.data_type) g;
    END IF;

    SELECT count(*), count(DISTINCT x.user_id) INTO v_sessions, v_viewers
    FROM (
        SELECT v.user_id FROM livewell.viewer_session v
        WHERE v.seen_at > p_now - interval '5 minutes' LIMIT c_sessions) x;
    IF v_sessions = c_sessions THEN
        v_many := true;
        SELECT * INTO v_session_pages FROM livewell.table_pages('livewell.viewer_session', 200);
        SELECT round(count(*) * 100 / v_session_pages.percent),
               round(count(*) * 100 / v_session_pages.percent * v_viewers / c_sessions)
        INTO v_sessions, v_viewers
        FROM livewell.viewer_session v TABLESAMPLE SYSTEM (
            v_session_pages.percent) REPEATABLE (7601)
        WHERE v.seen_at > p_now - interval '5 minutes';
    END IF;
    RETURN jsonb_build_object(
        'how', CASE WHEN v_ledger.percent = 100 AND NOT v_many THEN 'exact' ELSE 'estimated' END,
        'keys', coalesce(v_keys, '[]'), 'subscriptions', coalesce(v_watched, '[]'),
        'viewed', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(w.data_type, w.verdict, w.viewers)), '[]')
            FROM livewell.sample_watched(p_now) w),
        'sessions', v_sessions, 'viewers', v_viewers);
END
$$;
COMMENT ON FUNCTION livewell.sample_refresh IS
    'Keys by verdict, subscriptions by type, sessions and viewers, from a bounded number of pages.';
REVOKE ALL ON FUNCTION livewell.sample_refresh FROM PUBLIC;
