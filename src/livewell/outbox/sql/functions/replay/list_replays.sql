-- A page of replays, the newest first, with how far each is.
--
-- Called by: OutboxAdmin.replays, the duty livewell.outbox.replay.
-- progress:  how much of the numbers was looked at, 0 to 1.
CREATE OR REPLACE FUNCTION livewell.list_replays(p_before bigint, p_limit integer, p_running boolean)
RETURNS TABLE (
    id bigint, sink text, topic text, tenant text, key text, from_at timestamptz,
    to_at timestamptz, rate float8, state text, progress float8, looked bigint, fed bigint,
    skipped bigint, created_at timestamptz, ended_at timestamptz
)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT y.id, s.name, y.topic, y.tenant, y.key, y.from_at, y.to_at, y.rate, y.state::text,
        CASE
            WHEN y.state = 'done' THEN 1
            WHEN y.place < y.first_number OR y.last_number = 0 THEN 0
            ELSE least(1, (y.place - y.first_number + 1.0)
                / greatest(y.last_number - y.first_number + 1, 1))
        END::float8,
        y.looked, y.fed, y.skipped, y.created_at, y.ended_at
    FROM livewell.event_replay y
    LEFT JOIN livewell.event_sink s ON s.id = y.sink
    WHERE (p_before IS NULL OR y.id < p_before) AND (NOT p_running OR y.state = 'running')
    ORDER BY y.id DESC LIMIT least(greatest(p_limit, 1), 100)
$$;
COMMENT ON FUNCTION livewell.list_replays IS 'A page of replays, with how far each is.';
REVOKE ALL ON FUNCTION livewell.list_replays FROM PUBLIC;
