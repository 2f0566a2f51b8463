-- The name of the queue that refreshes go through: refresh.<upstream>, or refresh.<upstream>.<pool>
-- for types with a pool of workers of their own.
--
-- Called by: many functions; every function that names such a queue, whatever its package.
--            refresh/queues.py says the same to Python, and a test compares the two.
-- Call it once for a type, not for each key: a pinned search_path keeps it from being inlined.
CREATE OR REPLACE FUNCTION livewell.refresh_queue(p_upstream text, p_pool text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN 'refresh.' || p_upstream || coalesce('.' || p_pool, '');
END
$$;
COMMENT ON FUNCTION livewell.refresh_queue IS 'The queue of the types of an upstream and a pool.';
REVOKE ALL ON FUNCTION livewell.refresh_queue FROM PUBLIC;
