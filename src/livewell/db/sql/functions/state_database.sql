-- The state of the database itself: release, role of the server, connections, the oldest
-- transaction, and what was tolerated in the last two hours.
--
-- Called by: system_state. Exact; warnings are one row per kind and hour, the hundred most frequent
--            are named.
-- Index:     warning_hour_idx.
-- Other logins' transactions are seen only by a superuser or a member of pg_monitor; without that,
-- oldest_transaction_seconds is that of our own login.
CREATE OR REPLACE FUNCTION livewell.state_database()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object(
        'how', 'exact', 'release', (SELECT r.version FROM livewell.release r),
        'primary', NOT pg_catalog.pg_is_in_recovery(),
        'bytes', pg_catalog.pg_database_size(pg_catalog.current_database()),
        'connections', (
            SELECT count(*) FROM pg_catalog.pg_stat_activity a
            WHERE a.datname = pg_catalog.current_database()
        ),
        'oldest_transaction_seconds', (
            SELECT coalesce(max(extract(epoch FROM v_now - a.xact_start)), 0)::float8
            FROM pg_catalog.pg_stat_activity a
            WHERE a.datname = pg_catalog.current_database()
                AND a.pid <> pg_catalog.pg_backend_pid()
                AND a.backend_type = 'client backend'
        ),
        'warnings', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'place', w.place, 'what', w.what, 'this_hour', w.this_hour,
                        'last_hour', w.last_hour, 'last_at', w.last_at
                    ) ORDER BY w.n DESC,
                    w.place, w.what
                ),
                '[]'
            )
            FROM (
                SELECT g.place, g.what, sum(g.n) AS n, max(g.last_at) AS last_at,
                    coalesce(
                        sum(g.n) FILTER (WHERE g.hour = date_trunc('hour', v_now, 'UTC')), 0
                    ) AS this_hour,
                    coalesce(
                        sum(g.n) FILTER (WHERE g.hour < date_trunc('hour', v_now, 'UTC')), 0
                    ) AS last_hour
                FROM livewell.warning g
                WHERE g.hour >= date_trunc('hour', v_now, 'UTC') - interval '1 hour'
                GROUP BY g.place, g.what
                ORDER BY sum(g.n) DESC, g.place, g.what LIMIT 100
            ) w
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_database IS
    'Release, connections, oldest transaction and recent warnings, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_database FROM PUBLIC;
