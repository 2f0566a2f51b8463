-- Rule budget_three_quarters (P2): more than 75 % of a budget is used.
--
-- Called by: evaluate_rule.
CREATE OR REPLACE FUNCTION livewell.rule_budget_three_quarters(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT b.subject, b.summary FROM livewell.budgets_above(0.75) b;
END
$$;
COMMENT ON FUNCTION livewell.rule_budget_three_quarters IS
    'Budgets of which more than 75 % is used.';
REVOKE ALL ON FUNCTION livewell.rule_budget_three_quarters FROM PUBLIC;
