-- Rule breaker_open (P1): the calls of a credential fail, and its breaker is open or waits for its
-- probe. The summary says what opened it.
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
        format(
            '%s: its calls fail%s; %s', livewell.limiter_subject(c.limiter, c.name),
            CASE
                WHEN c.opened_reason IS NOT NULL
                    THEN format(
                        ' (%s%s)', c.opened_reason,
                        CASE
                            WHEN c.opened_keys > 1 THEN format(', %s keys', c.opened_keys)
                            ELSE ''
                        END
                    )
                ELSE ''
            END,
            CASE
                WHEN c.open_until > p_now
                    THEN format(
                        'none is made for %s min',
                        ceil(extract(epoch FROM c.open_until - p_now) / 60)
                    )
                ELSE 'one is made to see whether it is well again'
            END
        )
    FROM livewell.limiter_credential c
    -- Not while it merely doubts (opened = 0): a healthy key settles that within seconds. Nor while
    -- it waits out a silence, which has a rule of its own.
    WHERE c.active
        AND c.breaker <> 'closed'
        AND (
            c.opened > 0
            OR c.opened_reason <> 'silence' AND c.opened_at < p_now - interval '1 minute'
        );
END
$$;
COMMENT ON FUNCTION livewell.rule_breaker_open IS 'Credentials whose breaker is not closed.';
REVOKE ALL ON FUNCTION livewell.rule_breaker_open FROM PUBLIC;
