-- How many people look at a key now: distinct users with a session seen within five minutes, at
-- most 1,000 (beyond that order no longer matters).
--
-- Called by: list_watched_keys, why_key; whoever shows it; dispatch_due has the same words inside
--            its own statement.
-- Index:     subscription_key_idx, viewer_session_pkey.
-- Compared at read time: a ghost counts for nothing even if no sweep ever runs (R3).
-- Why 2,000 rows are read: a user has at most 1,000 subscriptions, so nobody alone can hide the
-- others behind their own tabs. A key with 100,000 viewers: 110 ms without the bound, 3 ms with it.
-- Why SECURITY DEFINER: operators and readers may know how many look at a key, and not who (L4).
-- count_all lets it see everybody's rows while it counts.
-- Not for livewell_api: it counts everybody's rows, and row security holds requests to those of
-- their own user.
CREATE OR REPLACE FUNCTION livewell.count_viewers(p_type text, p_key text)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_since pg_catalog.timestamptz := v_now - interval '5 minutes';
    v_user  pg_catalog.text := livewell.count_all();
    v_n     integer;
BEGIN
    SELECT least(count(DISTINCT l.user_id), 1000) INTO v_n FROM (
        SELECT s.user_id FROM livewell.subscription s
        JOIN livewell.viewer_session v ON v.id = s.session_id
        WHERE s.data_type = p_type AND s.key = p_key AND v.seen_at > v_since LIMIT 2000) l;
    PERFORM livewell.count_own(v_user);
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.count_viewers IS 'Distinct users who look at a key now, up to 1,000.';
REVOKE ALL ON FUNCTION livewell.count_viewers FROM PUBLIC;
