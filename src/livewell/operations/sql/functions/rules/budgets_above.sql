-- Budgets of which more than a share is used or reserved.
--
-- Called by: rule_budget_three_quarters, rule_budget_nine_tenths. Through list_limiters: what
--            counts against a budget is decided there.
CREATE OR REPLACE FUNCTION livewell.budgets_above(p_share float8)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT livewell.limiter_subject(l.name, l.credential),
        format(
            '%s: %s %% of its budget of %s %s is used',
            livewell.limiter_subject(l.name, l.credential),
            round(100.0 * (l.used + l.reserved) / l.budget_units, 1), l.budget_units, l.budget_unit
        )
    FROM livewell.list_limiters() l
    WHERE l.active AND l.used + l.reserved > l.budget_units * p_share;
END
$$;
COMMENT ON FUNCTION livewell.budgets_above IS 'Budgets of which more than this share is used.';
REVOKE ALL ON FUNCTION livewell.budgets_above FROM PUBLIC;
