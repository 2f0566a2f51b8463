-- What these sessions are subscribed to, where that differs from what the caller knows.
--
-- Called by: the hub (refresh/push/streamed_sessions.py), when a stream opens and for all streams
--            of a process at every poll interval: a subscription may have been changed on another
--            server.
-- p_sessions: ids as clients have them; stored are their hashes.
-- p_users:   whose each must be: a user; public:<key>@<network> for somebody anonymous with a
--            public key; NULL for somebody anonymous who is known by the id alone.
-- p_known:   subs_version of each as the caller knows it; -1: nothing is known.
-- Answer:    a row for each session that changed, and one with subs_version NULL for each that is
--            gone or somebody else's: the same answer. A session that did not change is not in it.
-- Index:     viewer_session_pkey, subscription_pkey.
CREATE OR REPLACE FUNCTION livewell.keys_of_sessions(
    p_sessions uuid[], p_users text[], p_known bigint[])
RETURNS TABLE (session uuid, subs_version bigint, types text[], keys text[])
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
       OR cardinality(p_known) IS DISTINCT FROM cardinality(p_sessions)
       OR cardinality(p_users) IS DISTINCT FROM cardinality(p_sessions) THEN
        RAISE EXCEPTION '% sessions, % users and % versions: as many of each, and at most 1000',
            cardinality(p_sessions), cardinality(p_users), cardinality(p_known)
        USING ERRCODE = 'LW003';
    END IF;
    RETURN QUERY
    SELECT g.session, s.subs_version, coalesce(b.types, '{}'), coalesce(b.keys, '{}')
    FROM (
        SELECT u.session, u.known, u.name, livewell.session_hash(u.session) AS id,
               livewell.public_key_of(u.name) AS public_key
        FROM unnest(p_sessions, p_users, p_known) AS u (session, name, known)
        OFFSET 0) g     -- so that each is hashed once
    LEFT JOIN LATERAL (         -- one look for each, see subscribe
        SELECT v.id, v.subs_version FROM livewell.viewer_session v
        WHERE v.id = g.id
          AND v.user_id
              || '' = coalesce(CASE WHEN g.public_key IS NULL THEN g.name END, 'session:' || g.id)
          AND coalesce(v.public_key = g.public_key, true)
        OFFSET 0) s ON true
    -- Only of those that changed: at rest a look at two thousand sessions reads two thousand rows
    -- and no subscription.
    LEFT JOIN LATERAL (
        SELECT array_agg(u.data_type) AS types, array_agg(u.key) AS keys
        FROM livewell.subscription u
        WHERE u.session_id = s.id AND s.subs_version <> g.known) b ON true
    WHERE s.subs_version IS DISTINCT FROM g.known;
END
$$;
COMMENT ON FUNCTION livewell.keys_of_sessions IS
    'Subscriptions of sessions that changed since the caller last looked; sessions that are gone, '
    'or of somebody else, have no version.';
REVOKE ALL ON FUNCTION livewell.keys_of_sessions FROM PUBLIC;
