-- Delete a beacon that will not come back. Called by: `livewell beacons --forget`.
CREATE OR REPLACE FUNCTION livewell.forget_beacon(p_name text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    DELETE FROM livewell.beacon b WHERE b.name = p_name;
END
$$;
COMMENT ON FUNCTION livewell.forget_beacon IS 'Deletes a beacon.';
REVOKE ALL ON FUNCTION livewell.forget_beacon FROM PUBLIC;
