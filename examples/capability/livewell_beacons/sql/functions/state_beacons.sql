-- Beacons in the system state. Called by: system_state, which finds every state_<name>().
CREATE OR REPLACE FUNCTION livewell.state_beacons()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object('how', 'exact', 'beacons', coalesce((
        SELECT jsonb_agg(jsonb_build_object(
            'name', b.name,
            'silent_seconds', extract(epoch FROM v_now - b.seen_at)::float8,
            'late', v_now > b.seen_at + b.every_seconds * interval '1 second') ORDER BY b.name)
        FROM (SELECT * FROM livewell.beacon o ORDER BY o.name LIMIT 1000) b), '[]'));
END
$$;
COMMENT ON FUNCTION livewell.state_beacons IS 'Every beacon, and how long it has been silent.';
REVOKE ALL ON FUNCTION livewell.state_beacons FROM PUBLIC;
