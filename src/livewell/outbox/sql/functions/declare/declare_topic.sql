-- Declare a topic, or change it. Idempotent: what is so already is not written.
--
-- Called by: Outbox.write (an app that opens), `livewell outbox topics`, other packages' migrations
--            and functions that emit.
-- p_options: on_dead (continue, park), payload_bytes_max; what is not there keeps its value.
-- Routes are made for every sink whose patterns fit; both declare functions lock event_route, so
-- that a topic and a sink that are declared at once find each other.
CREATE OR REPLACE FUNCTION livewell.declare_topic(p_name text, p_options jsonb DEFAULT '{}')
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_on_dead   text := p_options ->> 'on_dead';
    v_bytes     integer := (p_options ->> 'payload_bytes_max')::integer;
BEGIN
    IF EXISTS (
        SELECT FROM livewell.event_topic t
        WHERE t.name = p_name
            AND t.on_dead = coalesce(v_on_dead, t.on_dead)
            AND t.payload_bytes_max = coalesce(v_bytes, t.payload_bytes_max)
    )
    THEN
        RETURN false;
    END IF;
    IF p_name !~ '^[A-Za-z][A-Za-z0-9_.-]{0,199}$' THEN
        RAISE EXCEPTION
            'topic %: 1 to 200 of A-Z a-z 0-9 _ . - are allowed, beginning with a letter', p_name
            USING ERRCODE = 'LW003';
    ELSIF v_on_dead NOT IN ('continue', 'park') THEN
        RAISE EXCEPTION 'topic %: on_dead is %; allowed are continue and park', p_name, v_on_dead
            USING ERRCODE = 'LW003';
    ELSIF v_bytes NOT BETWEEN 1 AND 1048576 THEN
        RAISE EXCEPTION 'topic %: payload_bytes_max is %; 1 to 1048576 are allowed', p_name, v_bytes
            USING ERRCODE = 'LW003';
    END IF;
    LOCK TABLE livewell.event_route IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO livewell.event_topic (name, on_dead, payload_bytes_max, created_at)
    VALUES (p_name, coalesce(v_on_dead, 'continue'), coalesce(v_bytes, 262144), v_now)
    ON CONFLICT (name) DO UPDATE
    SET on_dead = coalesce(v_on_dead, event_topic.on_dead),
        payload_bytes_max = coalesce(v_bytes, event_topic.payload_bytes_max);
    INSERT INTO livewell.event_route (sink, topic)
    SELECT s.id, p_name FROM livewell.event_sink s WHERE livewell.topic_matches(p_name, s.topics)
    ON CONFLICT DO NOTHING;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.declare_topic IS
    'Declares a topic or changes its options; false if it was so already.';
REVOKE ALL ON FUNCTION livewell.declare_topic FROM PUBLIC;
