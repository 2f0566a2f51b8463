-- Rule budget_nine_tenths (P1): more than 90 % of a budget is used.
--
-- Called by: evaluate_rule.
CREATE OR REPLACE FUNCTION livewell.rule_budget_nine_tenths(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT b.subject, b.summary FROM livewell.budgets_above(0.9) b;
END
$$;
COMMENT ON FUNCTION livewell.rule_budget_nine_tenths IS 'Budgets of which more than 90 % is used.';
REVOKE ALL ON FUNCTION livewell.rule_budget_nine_tenths FROM PUBLIC;
