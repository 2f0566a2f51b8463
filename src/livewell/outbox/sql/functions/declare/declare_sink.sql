-- Declare a sink, or change it. Idempotent: what is so already is not written.
--
-- Called by: Outbox.write (an app that opens), `livewell outbox sinks`.
-- p_options: ordered, outside, attempts, batch_max, backoff_base_seconds, backoff_cap_seconds,
--            deadline_seconds, rate; what is not there has its default.
-- Answer: its id. It takes events that are emitted from now on; older ones come by a replay.
CREATE OR REPLACE FUNCTION livewell.declare_sink(
    p_name text, p_kind text, p_topics text[], p_options jsonb DEFAULT '{}'
)
RETURNS smallint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_old   livewell.event_sink;
    v_new   livewell.event_sink;
BEGIN
    SELECT s.* INTO v_old FROM livewell.event_sink s WHERE s.name = p_name;
    v_new := v_old;
    v_new.kind := p_kind;
    v_new.topics := p_topics;
    v_new.ordered := coalesce((p_options ->> 'ordered')::boolean, true);
    v_new.outside := coalesce((p_options ->> 'outside')::boolean, false);
    v_new.attempts := coalesce((p_options ->> 'attempts')::smallint, 20);
    v_new.batch_max := coalesce((p_options ->> 'batch_max')::smallint, 1000);
    v_new.backoff_base_seconds := coalesce((p_options ->> 'backoff_base_seconds')::float8, 1);
    v_new.backoff_cap_seconds := coalesce((p_options ->> 'backoff_cap_seconds')::float8, 300);
    v_new.deadline_seconds := coalesce((p_options ->> 'deadline_seconds')::float8, 30);
    v_new.rate := p_options ->> 'rate';
    IF v_old IS NOT DISTINCT FROM v_new AND v_old.id IS NOT NULL THEN
        RETURN v_old.id;
    END IF;
    LOCK TABLE livewell.event_route IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO livewell.event_sink AS s (
        name, kind, topics, ordered, outside, attempts, batch_max, backoff_base_seconds,
        backoff_cap_seconds, deadline_seconds, rate, created_at, declared_at
    )
    VALUES (
        p_name, v_new.kind, v_new.topics, v_new.ordered, v_new.outside, v_new.attempts,
        v_new.batch_max, v_new.backoff_base_seconds, v_new.backoff_cap_seconds,
        v_new.deadline_seconds, v_new.rate, v_now, v_now
    )
    ON CONFLICT (name) DO UPDATE
    SET kind = v_new.kind, topics = v_new.topics, ordered = v_new.ordered,
        outside = v_new.outside, attempts = v_new.attempts, batch_max = v_new.batch_max,
        backoff_base_seconds = v_new.backoff_base_seconds,
        backoff_cap_seconds = v_new.backoff_cap_seconds,
        deadline_seconds = v_new.deadline_seconds, rate = v_new.rate, declared_at = v_now
    RETURNING s.id INTO v_new.id;
    INSERT INTO livewell.relay_shard (sink, shard)
    SELECT v_new.id, i FROM generate_series(0, 63) AS i
    ON CONFLICT DO NOTHING;
    DELETE FROM livewell.event_route r
    WHERE r.sink = v_new.id AND NOT livewell.topic_matches(r.topic, p_topics);
    INSERT INTO livewell.event_route (sink, topic)
    SELECT v_new.id, t.name FROM livewell.event_topic t
    WHERE livewell.topic_matches(t.name, p_topics)
    ON CONFLICT DO NOTHING;
    RETURN v_new.id;
END
$$;
COMMENT ON FUNCTION livewell.declare_sink IS
    'Declares where events go, or changes it; answers the id of the sink.';
REVOKE ALL ON FUNCTION livewell.declare_sink FROM PUBLIC;
