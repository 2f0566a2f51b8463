-- For how many days from today on the outbox has its partitions, and which of today's and tomorrow's
-- are missing.
--
-- Called by: state_outbox. 61 days of three tables are looked up in the catalog at most.
-- Why tomorrow's matters: without it every emission fails from midnight on, and with it the
-- transaction that emits.
CREATE OR REPLACE FUNCTION livewell.describe_event_days(p_now timestamptz)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $$
    WITH partition AS (
        SELECT i.ahead, p.parent || '_' || to_char(p_now::date + i.ahead, 'YYYYMMDD') AS name
        FROM generate_series(0, 60) AS i (ahead)
        CROSS JOIN unnest(ARRAY['event', 'event_sent', 'inbox']) AS p (parent)
    ), missing AS (
        SELECT p.ahead, p.name FROM partition p
        WHERE NOT EXISTS (
            SELECT FROM pg_catalog.pg_class c
            WHERE c.relnamespace = 'livewell'::regnamespace
                AND c.relname = p.name
                AND c.relispartition
        )
    )
    SELECT jsonb_build_object(
        'ahead', coalesce(min(m.ahead), 61),
        'missing', coalesce(
            jsonb_agg(m.name ORDER BY m.ahead, m.name) FILTER (WHERE m.ahead <= 1), '[]'
        )
    )
    FROM missing m
$$;
COMMENT ON FUNCTION livewell.describe_event_days IS
    'How many days ahead the outbox has partitions, and which of the next ones are missing.';
REVOKE ALL ON FUNCTION livewell.describe_event_days FROM PUBLIC;
