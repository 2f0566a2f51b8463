-- What is wrong with a limiter: each credential in use whose calls are stopped by its breaker or by
-- the upstream's wish, the one that is free first before the others.
--
-- Called by: rule_upstream_silent; key_trouble, why_job's readers, doctor. Index:
--            limiter_credential_pkey, limiter_calls_pkey.
-- calls, calls_failed: of the last ten minutes. cause, cause_keys: the failure that opened the
-- breaker, and how many different keys had failed by then.
CREATE OR REPLACE FUNCTION livewell.limiter_trouble(p_limiter text, p_now timestamptz)
RETURNS TABLE (
    credential text, breaker text, open_until timestamptz, opened integer, quiet_until timestamptz,
    calls bigint, calls_failed bigint, opened_at timestamptz, cause text, cause_keys integer,
    quiet_since timestamptz, quiet_asked_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.name, c.breaker, c.open_until, c.opened::integer,
        CASE WHEN c.quiet_until > p_now THEN c.quiet_until END, coalesce(k.calls, 0),
        coalesce(k.failures, 0), c.opened_at, c.opened_reason, c.opened_keys,
        CASE WHEN c.quiet_until > p_now THEN c.quiet_since END,
        CASE WHEN c.quiet_until > p_now THEN c.quiet_asked_seconds END
    FROM livewell.limiter_credential c
    CROSS JOIN LATERAL (
        SELECT sum(x.calls) AS calls, sum(x.failures) AS failures FROM livewell.limiter_calls x
        WHERE x.limiter = p_limiter
            AND x.credential = c.name
            AND x.since > p_now - interval '10 minutes'
    ) k
    WHERE c.limiter = p_limiter AND c.active AND (c.breaker <> 'closed' OR c.quiet_until > p_now)
    ORDER BY greatest(c.open_until, c.quiet_until), c.name;
END
$$;
COMMENT ON FUNCTION livewell.limiter_trouble IS
    'Credentials whose calls are stopped by the breaker or by the upstream, with how calls went.';
REVOKE ALL ON FUNCTION livewell.limiter_trouble FROM PUBLIC;
