-- Who holds which singleton and since when, and when each internal tick last ran.
--
-- Called by: system_state. Exact: there are as many rows as there are kinds of periodic work.
CREATE OR REPLACE FUNCTION livewell.state_leases()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object(
        'how', 'exact',
        'singletons', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', s.name, 'holder', s.holder, 'fence', s.fence,
                        'held', s.expires_at > v_now, 'released', s.expires_at = '-infinity',
                        'held_seconds', CASE
                            WHEN s.expires_at > v_now
                                THEN extract(epoch FROM v_now - s.acquired_at)::float8
                        END,
                        'renewed_seconds', CASE
                            WHEN s.renewed_at > '-infinity'
                                THEN extract(epoch FROM v_now - s.renewed_at)::float8
                        END,
                        'expired_seconds', CASE
                            WHEN s.expires_at <= v_now AND s.expires_at > '-infinity'
                                THEN extract(epoch FROM v_now - s.expires_at)::float8
                        END
                    ) ORDER BY s.name
                ),
                '[]'
            )
            FROM (SELECT * FROM livewell.singleton o ORDER BY o.name LIMIT 1000) s
        ),
        'ticks', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', t.name,
                        'last_seconds', extract(epoch FROM v_now - t.last_at)::float8, 'n', t.n
                    ) ORDER BY t.name
                ),
                '[]'
            )
            FROM (SELECT * FROM livewell.tick o ORDER BY o.name LIMIT 1000) t
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_leases IS
    'Singletons with their holders, and internal ticks, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_leases FROM PUBLIC;
