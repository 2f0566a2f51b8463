-- What a limiter and a credential are called in an alert: the limiter's name, and the credential's
-- if it has one. Never a secret: a credential is a name.
--
-- Called by: budgets_above, rule_breaker_open, rule_budget_reached, rule_calls_near_limit; rules
--            about limiters.
CREATE OR REPLACE FUNCTION livewell.limiter_subject(p_limiter text, p_credential text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN p_limiter || CASE WHEN p_credential <> '' THEN ' (' || p_credential || ')' ELSE '' END;
END
$$;
COMMENT ON FUNCTION livewell.limiter_subject IS 'The name of a limiter''s credential, for people.';
REVOKE ALL ON FUNCTION livewell.limiter_subject FROM PUBLIC;
