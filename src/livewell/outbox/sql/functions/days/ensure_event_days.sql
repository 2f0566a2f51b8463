-- Make the day partitions of events, deliveries and the inbox from yesterday to p_ahead days from
-- now, where they are missing.
--
-- Called by: Outbox.write (an app that opens), housekeeping (hourly), `livewell migrate` through it.
-- SECURITY DEFINER: making a partition needs the owner. Its only input is a bounded number.
-- CREATE LIKE + ATTACH takes SHARE UPDATE EXCLUSIVE on the parent, which no insert waits for. No
-- DEFAULT partition: it would block making days.
-- Types are qualified: search_path = '' still looks into pg_temp first for types, and a caller's
-- own domain would run as us.
CREATE OR REPLACE FUNCTION livewell.ensure_event_days(p_ahead integer)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET lock_timeout = '100ms'
SET timezone = 'UTC'
AS $$
DECLARE
    v_today     pg_catalog.date := livewell.now()::pg_catalog.date;
    v_parent    pg_catalog.text;
    v_day       pg_catalog.date;
    v_name      pg_catalog.text;
    v_made      integer := 0;
BEGIN
    FOR v_parent, v_day IN
        SELECT p.parent, v_today + i
        FROM unnest(ARRAY['event', 'event_sent', 'inbox']) AS p (parent)
        CROSS JOIN generate_series(-1, least(greatest(p_ahead, 1), 60)) AS i
        ORDER BY i, p.parent
    LOOP
        v_name := v_parent || '_' || to_char(v_day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass('livewell.' || v_name) IS NOT NULL;
        -- One maker at a time; whoever comes second leaves it to the first.
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(hashtextextended('livewell.event', 0))
            OR to_regclass('livewell.' || v_name) IS NOT NULL;
        EXECUTE format(
            'CREATE TABLE livewell.%I (LIKE livewell.%I INCLUDING DEFAULTS)', v_name, v_parent
        );
        EXECUTE format(
            'COMMENT ON TABLE livewell.%I IS %L', v_name, v_parent || ' of ' || v_day || ' (UTC).'
        );
        EXECUTE format(
            'ALTER TABLE livewell.%I ATTACH PARTITION livewell.%I FOR VALUES FROM (%L) TO (%L)',
            v_parent, v_name, v_day::pg_catalog.text, (v_day + 1)::pg_catalog.text
        );
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END
$$;
COMMENT ON FUNCTION livewell.ensure_event_days IS
    'Creates missing daily partitions of the outbox; answers how many it made.';
REVOKE ALL ON FUNCTION livewell.ensure_event_days FROM PUBLIC;
