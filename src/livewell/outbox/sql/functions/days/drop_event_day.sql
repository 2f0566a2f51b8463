-- Drop the oldest day partition of the outbox that nobody needs any more. At most one per call.
--
-- Called by: housekeeping, hourly, until it answers NULL.
-- A day of events leaves when its last delivery is p_keep_days old (O8): nothing of it waits,
-- nothing of it is a dead letter, and nothing of it was sent since. A day of event_sent leaves
-- after p_keep_days and a day of the inbox after p_inbox_days.
-- SECURITY DEFINER: dropping needs the owner; the only inputs are numbers, and fewer than 1 day is
-- refused.
-- lock_timeout: whoever emits waits no longer than 100 ms because of us; the caller tries later.
CREATE OR REPLACE FUNCTION livewell.drop_event_day(p_keep_days integer, p_inbox_days integer)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET lock_timeout = '100ms'
SET timezone = 'UTC'
AS $$
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_today     pg_catalog.date := v_now::pg_catalog.date;
    v_name      pg_catalog.text;
    v_parent    pg_catalog.text;
    v_day       pg_catalog.date;
BEGIN
    IF p_keep_days < 1 OR p_inbox_days < 1 THEN
        RAISE EXCEPTION 'events are kept at least 1 day, not % and %', p_keep_days, p_inbox_days
            USING ERRCODE = 'LW003';
    END IF;
    FOR v_parent, v_name, v_day IN
        SELECT p.relname, c.relname, to_date(right(c.relname, 8), 'YYYYMMDD')
        FROM pg_catalog.pg_inherits i
        JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
        JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
        WHERE i.inhparent IN (
                'livewell.event'::pg_catalog.regclass, 'livewell.event_sent'::pg_catalog.regclass,
                'livewell.inbox'::pg_catalog.regclass
            )
            AND right(c.relname, 8) < to_char(
                v_today - CASE p.relname WHEN 'inbox' THEN p_inbox_days ELSE p_keep_days END,
                'YYYYMMDD'
            )
        ORDER BY c.relname
    LOOP
        CONTINUE WHEN v_parent = 'event' AND (
            EXISTS (SELECT FROM livewell.event_delivery d WHERE d.day = v_day)
            OR EXISTS (SELECT FROM livewell.dead_event d WHERE d.day = v_day)
            OR EXISTS (
                SELECT FROM livewell.event_sink k
                JOIN livewell.event_sent s ON s.sink = k.id AND s.day = v_day
                WHERE s.sent_at > v_now - p_keep_days * interval '1 day'
            )
        );
        EXECUTE format('DROP TABLE livewell.%I', v_name);
        RETURN v_name;
    END LOOP;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION livewell.drop_event_day IS
    'Drops one daily partition of the outbox that nobody needs; answers its name, or NULL.';
REVOKE ALL ON FUNCTION livewell.drop_event_day FROM PUBLIC;
