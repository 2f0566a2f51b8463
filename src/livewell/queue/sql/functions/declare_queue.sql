-- Make sure a queue exists with this policy. Pausing is left as it is.
--
-- Called by: clients and workers at start, for every queue their tasks name.
-- Writes only when something differs: a fleet that starts together must not fight over one row.
CREATE OR REPLACE FUNCTION livewell.declare_queue(p_name text, p_attempts integer, p_backoff_base_seconds float8, p_backoff_cap_seconds float8, p_lost_max integer DEFAULT 5,
    p_concurrency integer DEFAULT NULL, p_group_limit integer DEFAULT NULL, p_limiter text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    IF EXISTS (SELECT FROM livewell.queue q WHERE q.name = p_name AND q.attempts = p_attempts
               AND q.backoff_base_seconds = p_backoff_base_seconds AND q.backoff_cap_seconds = p_backoff_cap_seconds AND q.lost_max = p_lost_max
               AND (q.concurrency, q.group_limit, q.limiter) IS NOT DISTINCT FROM (p_concurrency, p_group_limit, p_limiter)) THEN
        RETURN;
    END IF;
    IF p_limiter IS NOT NULL AND NOT EXISTS (SELECT FROM livewell.limiter l WHERE l.name = p_limiter) THEN
        RAISE EXCEPTION 'limiter "%" is not declared', p_limiter USING ERRCODE = 'LW006';
    END IF;
    INSERT INTO livewell.queue AS q (name, attempts, backoff_base_seconds, backoff_cap_seconds, lost_max, concurrency, group_limit, limiter, created_at)
    VALUES (p_name, p_attempts, p_backoff_base_seconds, p_backoff_cap_seconds, p_lost_max, p_concurrency, p_group_limit, p_limiter, v_now)
    ON CONFLICT (name) DO UPDATE
    SET attempts = excluded.attempts, backoff_base_seconds = excluded.backoff_base_seconds, backoff_cap_seconds = excluded.backoff_cap_seconds, lost_max = excluded.lost_max,
        concurrency = excluded.concurrency, group_limit = excluded.group_limit, limiter = excluded.limiter;
END
$$;
COMMENT ON FUNCTION livewell.declare_queue IS 'Creates a queue or brings its policy up to date.';
REVOKE ALL ON FUNCTION livewell.declare_queue FROM PUBLIC;
