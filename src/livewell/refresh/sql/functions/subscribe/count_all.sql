-- From here on, in this transaction, the owner's functions see every row of sessions and
-- subscriptions, until count_own; answers for whom the transaction acted, which count_own is to be
-- given.
--
-- Called by: count_viewers, sample_watched and watched_keys, which answer numbers. Nobody else may.
-- How: the policy "counted" (grants.sql) holds while livewell.counts is on and nobody is named. Who
-- sets it from outside gains nothing: whatever acts for a user names the user before it reads.
CREATE OR REPLACE FUNCTION livewell.count_all()
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_user  pg_catalog.text := coalesce(pg_catalog.current_setting('livewell.user_id', true), '');
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', '', true),
        pg_catalog.set_config('livewell.counts', 'on', true);
    RETURN v_user;
END
$$;
COMMENT ON FUNCTION livewell.count_all IS
    'Lets the owner''s counting functions see every session and subscription; answers for whom the '
    'transaction acted.';
REVOKE ALL ON FUNCTION livewell.count_all FROM PUBLIC;
