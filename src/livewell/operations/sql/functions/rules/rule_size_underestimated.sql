-- Rule size_underestimated (P2): answers of a type, as measured, are more than twice as large as
-- its file says; what is reserved for its calls is too little.
--
-- Called by: evaluate_rule. Index: limiter_estimate_pkey.
CREATE OR REPLACE FUNCTION livewell.rule_size_underestimated(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.name,
        format(
            '%s: an answer has %s bytes per key, and its file says %s', t.name, round(e.units),
            t.size_estimate
        )
    FROM livewell.data_type t
    JOIN livewell.limiter_estimate e
        ON e.limiter = t.upstream AND e.kind = 'livewell.refresh:' || t.name
    WHERE e.units > 2 * t.size_estimate;
END
$$;
COMMENT ON FUNCTION livewell.rule_size_underestimated IS
    'Types whose answers are more than twice as large as estimated.';
REVOKE ALL ON FUNCTION livewell.rule_size_underestimated FROM PUBLIC;
