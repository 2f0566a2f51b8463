-- How many people look at each of these keys now, as count_viewers counts them: distinct users with
-- a session seen within five minutes, at most 1,000.
--
-- Called by: due_candidates, recount_viewers. Index: subscription_key_idx, viewer_session_pkey.
-- p_looked:  subscriptions looked at for a key, 1 to 1,000. Where these were all present and of
--            many users, there may be more: the answer is then at least the class the key was in.
-- Where they were of few users 2,000 are looked at: a user has at most 1,000, so nobody alone can
-- hide the others behind their own tabs.
CREATE OR REPLACE FUNCTION livewell.viewers_of(
    p_types text[], p_keys text[], p_classes integer[], p_looked integer, p_now timestamptz)
RETURNS integer[]
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_since     timestamptz := p_now - interval '5 minutes';
BEGIN
    RETURN ARRAY(
        SELECT (CASE WHEN n.rows < p_looked THEN n.users
                     WHEN n.users * 2 > p_looked
                         THEN
                             CASE
                                 WHEN p_looked < 1000
                                     AND g.class <> 0 THEN greatest(n.users, 2 ^ (abs(g.class) - 1))
                                 ELSE n.users
                             END
                     ELSE (SELECT least(count(DISTINCT s.user_id), 1000) FROM (
                         SELECT b.user_id FROM livewell.subscription b
                         JOIN livewell.viewer_session v ON v.id = b.session_id
                         WHERE b.data_type = g.name AND b.key = g.key AND v.seen_at > v_since
                         LIMIT 2000) s) END)::integer
        FROM unnest(p_types, p_keys, p_classes) WITH ORDINALITY AS g (name, key, class, place)
        CROSS JOIN LATERAL (
            SELECT count(DISTINCT s.user_id) AS users, count(*) AS rows FROM (
                SELECT b.user_id FROM livewell.subscription b
                JOIN livewell.viewer_session v ON v.id = b.session_id
                WHERE b.data_type = g.name AND b.key = g.key AND v.seen_at > v_since
                LIMIT p_looked) s) n
        ORDER BY g.place);
END
$$;
COMMENT ON FUNCTION livewell.viewers_of IS
    'Distinct users who look at each of the given keys now, up to 1,000.';
REVOKE ALL ON FUNCTION livewell.viewers_of FROM PUBLIC;
