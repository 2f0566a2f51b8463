-- Rule exports_waiting (P1): an export has waited for its first attempt for five minutes.
--
-- Called by: evaluate_rule.
-- Index:     export_open_idx
CREATE OR REPLACE FUNCTION livewell.rule_exports_waiting(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    RETURN QUERY
    SELECT 'exports'::text, format(
        '%2$s exports wait for more than five minutes, the oldest since %1$s',
        to_char(n.oldest AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), n.late)
    FROM (
        SELECT min(o.created_at) AS oldest, count(*) AS late
        FROM (
            SELECT e.created_at FROM livewell.export e
            WHERE e.state = 'waiting' AND e.attempt = 0
                AND e.created_at < p_now - interval '5 minutes'
            ORDER BY e.created_at LIMIT 10000
        ) o
    ) n
    WHERE n.late > 0;
END
$$;
COMMENT ON FUNCTION livewell.rule_exports_waiting IS 'Whether exports wait for more than five minutes.';
REVOKE ALL ON FUNCTION livewell.rule_exports_waiting FROM PUBLIC;
