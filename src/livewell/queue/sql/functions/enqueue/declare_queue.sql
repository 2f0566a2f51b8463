-- Make sure a queue exists with this policy. Pausing is left as it is, and so are its limits unless
-- p_limits states them: {concurrency, group_limit, limiter}, null for none.
-- p_if_missing: whoever merely names a queue creates it, and changes nothing that somebody
--               declared.
--
-- Called by: apply_type, apply_upstream; clients and workers at start, for every queue their tasks
--            name.
-- Writes only when something differs: a fleet that starts together must not fight over one row.
CREATE OR REPLACE FUNCTION livewell.declare_queue(
    p_name text,
    p_attempts integer,
    p_backoff_base_seconds float8,
    p_backoff_cap_seconds float8,
    p_lost_max integer DEFAULT 5,
    p_limits jsonb DEFAULT NULL,
    p_if_missing boolean DEFAULT false
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_limits    livewell.queue := jsonb_populate_record(NULL::livewell.queue, p_limits);
BEGIN
    IF EXISTS (
        SELECT FROM livewell.queue q
        WHERE q.name = p_name
                AND q.attempts = p_attempts
                AND q.backoff_base_seconds = p_backoff_base_seconds
                AND q.backoff_cap_seconds = p_backoff_cap_seconds
                AND q.lost_max = p_lost_max
                AND (
                    p_limits IS NULL
                    OR (q.concurrency, q.group_limit, q.limiter) IS NOT DISTINCT FROM (
                        v_limits.concurrency, v_limits.group_limit, v_limits.limiter
                    )
                )
            OR p_if_missing AND q.name = p_name
    ) THEN
        RETURN;
    END IF;
    IF v_limits.limiter IS NOT NULL
        AND NOT EXISTS (SELECT FROM livewell.limiter l WHERE l.name = v_limits.limiter)
    THEN
        RAISE EXCEPTION 'limiter "%" is not declared', v_limits.limiter USING ERRCODE = 'LW006';
    END IF;
    INSERT INTO livewell.queue AS q (
        name, attempts, backoff_base_seconds, backoff_cap_seconds, lost_max, concurrency,
        group_limit, limiter, created_at
    )
    VALUES (
        p_name, p_attempts, p_backoff_base_seconds, p_backoff_cap_seconds, p_lost_max,
        v_limits.concurrency, v_limits.group_limit, v_limits.limiter, v_now
    )
    ON CONFLICT (name)
    DO UPDATE SET attempts = excluded.attempts,
        backoff_base_seconds = excluded.backoff_base_seconds,
        backoff_cap_seconds = excluded.backoff_cap_seconds, lost_max = excluded.lost_max,
        concurrency = CASE WHEN p_limits IS NULL THEN q.concurrency ELSE excluded.concurrency END,
        group_limit = CASE WHEN p_limits IS NULL THEN q.group_limit ELSE excluded.group_limit END,
        limiter = CASE WHEN p_limits IS NULL THEN q.limiter ELSE excluded.limiter END
    WHERE NOT p_if_missing;
END
$$;
COMMENT ON FUNCTION livewell.declare_queue IS 'Creates a queue or brings its policy up to date.';
REVOKE ALL ON FUNCTION livewell.declare_queue FROM PUBLIC;
