-- Rule breaker_open (P1): the calls of a credential fail, and its breaker is open or waits for its probe.
--
-- Called by: evaluate_rule. A table of a few rows.
CREATE OR REPLACE FUNCTION livewell.rule_breaker_open(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT livewell.limiter_subject(c.limiter, c.name),
           format('%s: its calls fail; %s', livewell.limiter_subject(c.limiter, c.name),
                  CASE WHEN c.open_until > p_now THEN format('none is made for %s min', ceil(extract(epoch FROM c.open_until - p_now) / 60)) ELSE 'one is made to see whether it is well again' END)
    FROM livewell.limiter_credential c WHERE c.active AND c.breaker <> 'closed';
END
$$;
COMMENT ON FUNCTION livewell.rule_breaker_open IS 'Credentials whose breaker is not closed.';
REVOKE ALL ON FUNCTION livewell.rule_breaker_open FROM PUBLIC;
