-- The keys a scheduled type walks through, in the order of the walk, after a given one; with those
-- that were deactivated if asked for.
--
-- Called by: `livewell types universe list`, the API. Index: universe_pkey.
CREATE OR REPLACE FUNCTION livewell.list_universe(
    p_type text, p_after text DEFAULT '', p_limit integer DEFAULT 100,
    p_inactive boolean DEFAULT false)
RETURNS TABLE (key text, active boolean, added_at timestamptz)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT u.key, u.active, u.added_at
    FROM livewell.universe u
    WHERE u.data_type = (livewell.registered_type(p_type)).name AND u.key > p_after COLLATE "C"
      AND (u.active OR p_inactive)
    ORDER BY u.key
    LIMIT least(p_limit, 1000)
$$;
COMMENT ON FUNCTION livewell.list_universe IS 'The keys a scheduled type walks through.';
REVOKE ALL ON FUNCTION livewell.list_universe FROM PUBLIC;
