-- Record that a program is alive. Called by: Beacons.see, PUT /v1/beacons/NAME.
CREATE OR REPLACE FUNCTION livewell.see_beacon(p_name text, p_every_seconds float8)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    INSERT INTO livewell.beacon (name, every_seconds, seen_at)
    VALUES (p_name, p_every_seconds, livewell.now())
    ON CONFLICT (name) DO UPDATE
    SET every_seconds = excluded.every_seconds, seen_at = excluded.seen_at;
END
$$;
COMMENT ON FUNCTION livewell.see_beacon IS
    'Records that a program is alive, and when it reports again.';
REVOKE ALL ON FUNCTION livewell.see_beacon FROM PUBLIC;
