-- Take one of the keys that nobody knew which a user may ask for in a minute; false when they are
-- used up.
--
-- Called by: refuse_demand. The user's row is the lock; counted under it, by the minute of the
--            database's clock.
CREATE OR REPLACE FUNCTION livewell.spend_cold_read(p_user text, p_max integer)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_minute    pg_catalog.timestamptz;
    v_v         livewell.viewer;
BEGIN
    -- A stranger has no row of its own: what its address and its public key may together.
    IF p_user LIKE 'public:%@%' THEN
        RETURN livewell.take_cold(livewell.origin_of(p_user), p_max, 1) > 0;
    END IF;
    INSERT INTO livewell.viewer (user_id) VALUES (p_user) ON CONFLICT DO NOTHING;
    SELECT * INTO v_v FROM livewell.viewer v WHERE v.user_id = p_user FOR NO KEY UPDATE;
    v_minute := date_trunc('minute', livewell.now());
    IF v_v.cold_minute IS DISTINCT FROM v_minute THEN
        v_v.cold_reads := 0;
    END IF;
    IF v_v.cold_reads >= p_max THEN
        RETURN false;
    END IF;
    UPDATE livewell.viewer v SET cold_minute = v_minute, cold_reads = v_v.cold_reads + 1
    WHERE v.user_id = p_user;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.spend_cold_read IS
    'Counts a read of an unknown key against the user''s budget of this minute.';
REVOKE ALL ON FUNCTION livewell.spend_cold_read FROM PUBLIC;
