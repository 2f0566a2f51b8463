-- Make the history partitions of today … + p_ahead days, where they are missing.
--
-- Called by: migrate, worker start, and hourly.
-- SECURITY DEFINER: workers insert history but do not own it; making a day's partition needs the
-- owner. Its only input is a bounded number.
-- CREATE LIKE + ATTACH takes SHARE UPDATE EXCLUSIVE on the parent, which no insert waits for. No
-- DEFAULT partition: it would block making days.
-- Types are qualified: search_path = '' still looks into pg_temp first for types, and a caller's
-- own domain would run as us.
CREATE OR REPLACE FUNCTION livewell.ensure_history_days(p_ahead integer)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET lock_timeout = '100ms'
SET timezone = 'UTC'
AS $$
DECLARE
    v_today pg_catalog.date := livewell.now()::pg_catalog.date;
    v_day   pg_catalog.date;
    v_name  pg_catalog.text;
    v_made  integer := 0;
BEGIN
    FOR v_day IN
        SELECT v_today + i FROM generate_series(0, least(greatest(p_ahead, 1), 60)) AS i
    LOOP
        v_name := 'job_history_' || to_char(v_day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass('livewell.' || v_name) IS NOT NULL;
        -- One maker at a time, of all days: two with a day each would wait for each other's parent,
        -- and one of them in vain. Whoever comes second leaves it to the first.
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(hashtextextended('livewell.job_history', 0))
            OR to_regclass('livewell.' || v_name) IS NOT NULL;
        EXECUTE format(
            'CREATE TABLE livewell.%I (LIKE livewell.job_history INCLUDING DEFAULTS)', v_name
        );
        EXECUTE format(
            'COMMENT ON TABLE livewell.%I IS %L', v_name, 'Jobs finished on ' || v_day || ' (UTC).'
        );
        EXECUTE format(
            'ALTER TABLE livewell.job_history ATTACH PARTITION livewell.%I '
            'FOR VALUES FROM (%L) TO (%L)',
            v_name, v_day::pg_catalog.timestamptz, (v_day + 1)::pg_catalog.timestamptz
        );
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END
$$;
COMMENT ON FUNCTION livewell.ensure_history_days IS
    'Creates missing daily partitions of job_history; answers how many it made.';
REVOKE ALL ON FUNCTION livewell.ensure_history_days FROM PUBLIC;
