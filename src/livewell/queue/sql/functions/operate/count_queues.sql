-- How many queues have names that begin so, and how many of them are paused.
--
-- Called by: pause_queues; the dashboard, before it asks whether that is meant.
-- Index:     queue_pkey. A name has only a-z 0-9 _ . -, and ~ is behind all of them.
-- Counted to 10,001: more are never paused at once.
CREATE OR REPLACE FUNCTION livewell.count_queues(p_prefix text)
RETURNS TABLE (n bigint, paused bigint)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT count(*), count(s.paused_at) FROM (
        SELECT q.paused_at FROM livewell.queue q
        WHERE q.name >= p_prefix AND q.name < p_prefix || '~'
        ORDER BY q.name LIMIT 10001
    ) s
$$;
COMMENT ON FUNCTION livewell.count_queues IS
    'How many queues begin so, and how many of those are paused; counted to 10,001.';
REVOKE ALL ON FUNCTION livewell.count_queues FROM PUBLIC;
