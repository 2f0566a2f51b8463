-- Rule budget_reached (P0): a budget is used as far as it may be, and no call is made any more.
--
-- Called by: evaluate_rule. Calls stop at the limiter's budget_stop (95 %), or when the next call
--            would not fit below it: then the limiter answers "budget".
CREATE OR REPLACE FUNCTION livewell.rule_budget_reached(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT livewell.limiter_subject(l.name, l.credential),
        format(
            '%s: its budget of %s %s is used up; no calls are made%s',
            livewell.limiter_subject(l.name, l.credential), l.budget_units, l.budget_unit,
            CASE
                WHEN l.reason = 'budget'
                    THEN to_char(
                        (p_now + l.wait_seconds * interval '1 second') AT TIME ZONE 'UTC',
                        '" before "YYYY-MM-DD HH24:MI" UTC"'
                    )
                ELSE ''
            END
        )
    FROM livewell.list_limiters() l
    JOIN livewell.limiter m ON m.name = l.name
    WHERE l.active
        AND l.budget_units IS NOT NULL
        AND (
            l.used + l.reserved >= m.budget_units * m.budget_stop
            OR l.reason = 'budget' AND l.calls_now = 0
        );
END
$$;
COMMENT ON FUNCTION livewell.rule_budget_reached IS 'Budgets that are used up.';
REVOKE ALL ON FUNCTION livewell.rule_budget_reached FROM PUBLIC;
