-- A key was used: remember when, at most once a minute.
--
-- Called by: servers, after the secret was right. Index: api_key_pkey.
-- Why SECURITY DEFINER: livewell_api has no table rights; it acts only on the row of the id it is
-- given.
CREATE OR REPLACE FUNCTION livewell.touch_key(p_id text)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    UPDATE livewell.api_key k
    SET last_used_at = v_now
    WHERE k.id = p_id AND (k.last_used_at IS NULL OR k.last_used_at < v_now - interval '1 minute');
END
$$;
COMMENT ON FUNCTION livewell.touch_key IS 'Notes that a key was used, at most once a minute.';
REVOKE ALL ON FUNCTION livewell.touch_key FROM PUBLIC;
