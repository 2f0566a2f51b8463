-- Rule warning_rate (P2): the same failure was tolerated five times or more within an hour. A
-- warning about a type names it, so each type counts for itself.
--
-- Called by: evaluate_rule. Index: warning_hour_idx.
-- Warnings are counted by the clock's hour. Of the hour before only rows count that began within
-- the last sixty minutes: never too many are counted.
CREATE OR REPLACE FUNCTION livewell.rule_warning_rate(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT w.place || ': ' || w.what,
        format('%s: %s: %s times within an hour', w.place, w.what, sum(w.n))
    FROM livewell.warning w
    WHERE w.hour >= date_trunc('hour', p_now, 'UTC') - interval '1 hour'
        AND (w.hour >= date_trunc('hour', p_now, 'UTC') OR w.first_at > p_now - interval '1 hour')
    GROUP BY w.place, w.what
    HAVING sum(w.n) >= 5;
END
$$;
COMMENT ON FUNCTION livewell.rule_warning_rate IS
    'Warnings that were counted five times or more within an hour.';
REVOKE ALL ON FUNCTION livewell.rule_warning_rate FROM PUBLIC;
