-- What the upstream itself said about its limit (G5). It can only tighten: never more is allowed
-- than was declared.
--
-- Called by: Limiter.observe, from response headers. NULL: it did not say.
-- remaining = 0 or a Retry-After means silence until then; a limit lower than ours is kept until a
-- higher one is seen.
-- A silence is believed for quiet_seconds_max at most: one absurd answer must not stop everybody
-- for a day (X10). If more was asked for, one call asks again after that: the breaker, if there is
-- one, waits half open for its probe. What was asked for is kept, so that a person can be told.
CREATE OR REPLACE FUNCTION livewell.observe_limiter(
    p_limiter text,
    p_credential text,
    p_limit integer,
    p_remaining integer,
    p_reset_seconds float8,
    p_retry_seconds float8
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_limiter   livewell.limiter;
    v_quiet     float8;
    v_until     timestamptz;
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_limiter FOR NO KEY UPDATE;
    v_now := livewell.now();
    -- NULL if it asked for none
    v_quiet := greatest(
        p_retry_seconds,
        CASE WHEN p_remaining <= 0 THEN coalesce(p_reset_seconds, v_limiter.rate_seconds) END
    );
    v_until := v_now + CASE WHEN v_quiet > 0 THEN least(v_quiet, v_limiter.quiet_seconds_max) END
        * interval '1 second';
    UPDATE livewell.limiter_credential c
    SET
        quiet_since = CASE
            WHEN v_until > v_now AND coalesce(c.quiet_until <= v_now, true) THEN v_now
            ELSE c.quiet_since
        END,
        quiet_asked_seconds = CASE
            WHEN v_until > v_now AND coalesce(v_until >= c.quiet_until, true) THEN v_quiet
            ELSE c.quiet_asked_seconds
        END,
        quiet_until = CASE
            WHEN v_until > v_now THEN greatest(c.quiet_until, v_until)
            ELSE c.quiet_until
        END,
        learnt_calls = CASE
            WHEN p_limit IS NULL THEN c.learnt_calls
            WHEN p_limit < v_limiter.rate_calls THEN greatest(p_limit, 1)
        END
    WHERE c.limiter = p_limiter AND c.name = p_credential;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE livewell.limiter_credential c
    SET breaker = 'half_open', open_until = v_now, opened_at = v_now, opened_reason = 'silence',
        opened_keys = 0, failing_until = NULL, free_at = v_until
    WHERE c.limiter = p_limiter
        AND c.name = p_credential
        AND c.breaker = 'closed'
        AND v_limiter.breaker_failures IS NOT NULL
        AND v_quiet > v_limiter.quiet_seconds_max;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.observe_limiter IS
    'Takes in a limit, a remainder or a Retry-After that the upstream stated; false when there is '
    'no such credential.';
REVOKE ALL ON FUNCTION livewell.observe_limiter FROM PUBLIC;
