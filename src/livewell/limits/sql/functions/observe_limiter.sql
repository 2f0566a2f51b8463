-- What the upstream itself said about its limit (G5). It can only tighten: never more is allowed than was declared.
--
-- Called by: Limiter.observe, from response headers. NULL: it did not say.
-- remaining = 0 or a Retry-After means silence until then; a limit lower than ours is kept until a higher one is seen.
CREATE OR REPLACE FUNCTION livewell.observe_limiter(p_limiter text, p_credential text, p_limit integer, p_remaining integer, p_reset_seconds float8, p_retry_seconds float8)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_limiter   livewell.limiter;
    v_quiet     float8;
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_limiter FOR NO KEY UPDATE;
    v_now := livewell.now();
    v_quiet := greatest(p_retry_seconds, CASE WHEN p_remaining <= 0 THEN coalesce(p_reset_seconds, v_limiter.rate_seconds) END);      -- NULL if it asked for none
    UPDATE livewell.limiter_credential c
    SET quiet_until = CASE WHEN v_quiet > 0 THEN greatest(c.quiet_until, v_now + least(v_quiet, 86400) * interval '1 second') ELSE c.quiet_until END,
        learnt_calls = CASE WHEN p_limit IS NULL THEN c.learnt_calls WHEN p_limit < v_limiter.rate_calls THEN greatest(p_limit, 1) END
    WHERE c.limiter = p_limiter AND c.name = p_credential;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.observe_limiter IS 'Takes in a limit, a remainder or a Retry-After that the upstream stated; false when there is no such credential.';
REVOKE ALL ON FUNCTION livewell.observe_limiter FROM PUBLIC;
