-- Ask for a replay: events of the past go to a sink once more, with the same ids.
--
-- Called by: OutboxAdmin.begin_replay.
-- p_topic, p_tenant, p_key: only these; NULL: any that the sink takes. p_from, p_to: when the events
--            were emitted; p_to NULL: until now. p_rate: events a second at most.
-- p_request_key: the caller's; repeated, it answers the replay that it began.
-- Index:     event_pkey: the first and the last number, one probe for each day.
CREATE OR REPLACE FUNCTION livewell.begin_replay(
    p_sink text, p_topic text, p_tenant text, p_key text, p_from timestamptz, p_to timestamptz,
    p_rate float8, p_request_key text
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_to    timestamptz := least(coalesce(p_to, v_now), v_now);
    v_day   date := (p_from AT TIME ZONE 'UTC')::date;
    v_last  date := (v_to AT TIME ZONE 'UTC')::date;
    v_sink  smallint;
    v_id    bigint;
BEGIN
    SELECT y.id INTO v_id FROM livewell.event_replay y WHERE y.request_key = p_request_key;
    IF FOUND THEN
        RETURN v_id;
    END IF;
    SELECT s.id INTO v_sink FROM livewell.event_sink s WHERE s.name = p_sink;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'sink % is not declared; list them with: livewell outbox sinks list', p_sink
            USING ERRCODE = 'LW003';
    ELSIF p_topic IS NOT NULL AND NOT EXISTS (
        SELECT FROM livewell.event_route r WHERE r.sink = v_sink AND r.topic = p_topic
    )
    THEN
        RAISE EXCEPTION 'sink % does not take topic %; its topics: livewell outbox topics list',
            p_sink, p_topic
            USING ERRCODE = 'LW003';
    ELSIF p_rate IS NULL OR p_rate NOT BETWEEN 0.1 AND 10000 THEN
        RAISE EXCEPTION 'a replay at % events a second: 0.1 to 10000 are allowed', p_rate
            USING ERRCODE = 'LW003';
    ELSIF p_from IS NULL OR p_from >= v_to THEN
        RAISE EXCEPTION 'a replay from % to %: from has to be before to, and in the past', p_from, v_to
            USING ERRCODE = 'LW003';
    ELSIF (SELECT count(*) FROM livewell.event_replay y WHERE y.state = 'running') >= 20 THEN
        RAISE EXCEPTION '20 replays are running; wait for one, or end one with: '
            'livewell outbox replay cancel ID'
            USING ERRCODE = 'LW003';
    END IF;
    INSERT INTO livewell.event_replay (
        created_at, from_at, to_at, fed_at, rate, first_number, last_number, place, day, sink, topic,
        tenant, key, request_key
    )
    SELECT v_now, p_from, v_to, v_now, p_rate, coalesce(a.number, 0), coalesce(z.number, 0), 0,
        coalesce(a.day, v_last), v_sink, p_topic, p_tenant, p_key, p_request_key
    FROM (SELECT) o
    LEFT JOIN (
        SELECT e.number, e.day FROM livewell.event e WHERE e.day BETWEEN v_day AND v_last
        ORDER BY e.number LIMIT 1
    ) a ON true
    LEFT JOIN (
        SELECT e.number FROM livewell.event e WHERE e.day BETWEEN v_day AND v_last
        ORDER BY e.number DESC LIMIT 1
    ) z ON true
    ON CONFLICT (request_key) DO NOTHING;
    SELECT y.id INTO v_id FROM livewell.event_replay y WHERE y.request_key = p_request_key;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION livewell.begin_replay IS
    'Begins to deliver past events once more; answers the number of the replay.';
REVOKE ALL ON FUNCTION livewell.begin_replay FROM PUBLIC;
