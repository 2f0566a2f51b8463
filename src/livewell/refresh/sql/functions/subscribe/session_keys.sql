-- What these sessions are subscribed to, where that differs from what the caller knows.
--
-- Called by: hubs before 0.7.0 (keys_of_sessions has followed), when a stream opens and for all
--            streams of a process at every poll interval: a subscription may have been changed on
--            another server.
-- p_known:   subs_version of each as the caller knows it; -1: nothing is known.
-- p_sessions: ids as clients have them; stored are their hashes. Of somebody anonymous user_id is
--             what these hubs compare with: "session:" and the id that was given.
-- Answer:    a row for each session that changed, and one with subs_version NULL for each that is
--            gone. A session that did not change is not in it.
-- Index:     viewer_session_pkey, subscription_pkey.
CREATE OR REPLACE FUNCTION livewell.session_keys(p_sessions uuid[], p_known bigint[])
RETURNS TABLE (session uuid, user_id text, subs_version bigint, types text[], keys text[])
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    IF coalesce(cardinality(p_sessions), 0) > 1000
       OR cardinality(p_known) IS DISTINCT FROM cardinality(p_sessions) THEN
        RAISE EXCEPTION '% sessions and % versions: at most 1000 pairs in one call',
            cardinality(p_sessions), cardinality(p_known)
        USING ERRCODE = 'LW003';
    END IF;
    RETURN QUERY
    SELECT g.id, CASE s.user_id WHEN 'session:' || s.id THEN 'session:' || g.id ELSE s.user_id END,
           s.subs_version, coalesce(b.types, '{}'), coalesce(b.keys, '{}')
    FROM unnest(p_sessions, p_known) AS g (id, known)
    LEFT JOIN livewell.viewer_session s ON s.id = livewell.session_hash(g.id)
    -- Only of those that changed: at rest a look at two thousand sessions reads two thousand rows
    -- and no subscription.
    LEFT JOIN LATERAL (
        SELECT array_agg(u.data_type) AS types, array_agg(u.key) AS keys
        FROM livewell.subscription u
        WHERE u.session_id = s.id AND s.subs_version <> g.known) b ON true
    WHERE s.subs_version IS DISTINCT FROM g.known;
END
$$;
COMMENT ON FUNCTION livewell.session_keys IS
    'Subscriptions of sessions that changed since the caller last looked; sessions that are gone '
    'have no version.';
REVOKE ALL ON FUNCTION livewell.session_keys FROM PUBLIC;
