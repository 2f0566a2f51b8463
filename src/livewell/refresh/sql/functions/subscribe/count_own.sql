-- The end of count_all: row security holds the owner's functions to one user again.
--
-- Called by: count_viewers, sample_watched and watched_keys, when they have counted. After an error
--            the transaction forgets both settings by itself.
CREATE OR REPLACE FUNCTION livewell.count_own(p_user text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM pg_catalog.set_config('livewell.counts', '', true),
        pg_catalog.set_config('livewell.user_id', p_user, true);
END
$$;
COMMENT ON FUNCTION livewell.count_own IS 'Ends what count_all began.';
REVOKE ALL ON FUNCTION livewell.count_own FROM PUBLIC;
