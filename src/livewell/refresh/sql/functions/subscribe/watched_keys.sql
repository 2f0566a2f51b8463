-- Every key that somebody looks at now, and how many do, as count_viewers counts: distinct users
-- with a session seen within five minutes, at most 1,000.
--
-- Called by: plan_groups; plan_state, which people ask for. Bound: p_limit subscriptions are looked
--            at.
-- Why SECURITY DEFINER: operators and readers may know how many look at a key, and not who (L4).
-- count_all lets it see everybody's rows while it counts.
-- Not for livewell_api, as count_viewers.
CREATE OR REPLACE FUNCTION livewell.watched_keys(p_limit integer)
RETURNS TABLE (data_type text, key text, viewers integer)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_since pg_catalog.timestamptz := v_now - interval '5 minutes';
    v_user  pg_catalog.text := livewell.count_all();
BEGIN
    RETURN QUERY
    SELECT x.data_type, x.key, least(count(*), 1000)::pg_catalog.int4 FROM (
        SELECT DISTINCT b.data_type, b.key, b.user_id
        FROM (
            SELECT b.data_type, b.key, b.user_id, b.session_id FROM livewell.subscription b
            LIMIT p_limit) b
        JOIN livewell.viewer_session s ON s.id = b.session_id
        WHERE s.seen_at > v_since) x
    GROUP BY x.data_type, x.key;
    PERFORM livewell.count_own(v_user);
END
$$;
COMMENT ON FUNCTION livewell.watched_keys IS
    'Keys that somebody looks at now, each with how many distinct users do, up to 1,000.';
REVOKE ALL ON FUNCTION livewell.watched_keys FROM PUBLIC;
