-- True if a topic fits one of a sink's patterns: a name, a beginning and a star, or a star alone.
--
-- Called by: declare_sink, declare_topic.
CREATE OR REPLACE FUNCTION livewell.topic_matches(p_topic text, p_patterns text[])
RETURNS boolean
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT EXISTS (
        SELECT FROM unnest(p_patterns) AS pattern
        WHERE pattern = p_topic
            OR (right(pattern, 1) = '*' AND starts_with(p_topic, left(pattern, -1)))
    )
$$;
COMMENT ON FUNCTION livewell.topic_matches IS 'True if a topic fits one of these patterns.';
REVOKE ALL ON FUNCTION livewell.topic_matches FROM PUBLIC;
