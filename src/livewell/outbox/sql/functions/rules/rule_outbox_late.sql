-- Rule outbox_late (P1): an event has been waiting for its sink for more than 5 minutes, at two
-- looks in a row: dead letters that are redriven are old and leave at once.
--
-- Called by: evaluate_rule. Bounded: list_sink_heads. Of a sink that it does not see as a whole the
--            oldest event is older than is said here.
-- A paused sink waits because somebody said so (the doctor tells it: sink_paused). Parked keys have
-- a rule of their own, and replays wait for their turn.
CREATE OR REPLACE FUNCTION livewell.rule_outbox_late(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_sinks text[];
    v_since timestamptz[];
BEGIN
    SELECT array_agg(s.name), array_agg(e.created_at) INTO v_sinks, v_since
    FROM (
        SELECT DISTINCT ON (o.sink) o.* FROM livewell.list_sink_heads() o
        ORDER BY o.sink, o.number
    ) h
    JOIN livewell.event_sink s ON s.id = h.sink AND s.paused_at IS NULL
    JOIN livewell.event e ON e.number = h.number AND e.day = h.day
    WHERE e.created_at < p_now - interval '5 minutes';
    RETURN QUERY
    SELECT l.subject,
        format(
            'sink %s: an event has been waiting for %s min%s', l.subject,
            floor(
                extract(epoch FROM p_now - v_since[array_position(v_sinks, l.subject)]) / 60
            ),
            CASE
                WHEN s.outside AND r.n = 0 THEN ', and nobody outside claims'
                WHEN r.n = 0 THEN ', and no relay is there'
                WHEN r.away_since IS NOT NULL THEN ', and the sink is away'
                WHEN b.n > 0 THEN format(', and %s of its keys are blocked', b.n)
                ELSE ''
            END
        )
    FROM livewell.lasting(
        'outbox_late', coalesce(v_sinks, '{}'), interval '1 minute', p_now
    ) l
    JOIN livewell.event_sink s ON s.name = l.subject
    CROSS JOIN LATERAL livewell.describe_sink_relays(s.id, p_now) r
    CROSS JOIN LATERAL (
        SELECT count(*) AS n
        FROM (
            SELECT FROM livewell.event_block k
            WHERE k.sink = s.id AND k.retry_at < 'infinity' LIMIT 10000
        ) x
    ) b;
END
$$;
COMMENT ON FUNCTION livewell.rule_outbox_late IS
    'Sinks for which an event has been waiting for more than 5 minutes.';
REVOKE ALL ON FUNCTION livewell.rule_outbox_late FROM PUBLIC;
