-- Rule exports_memory (P2): a worker and its children use 80 % of what they may use (E13).
--
-- Called by: evaluate_rule.
CREATE OR REPLACE FUNCTION livewell.rule_exports_memory(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    RETURN QUERY
    SELECT r.name, format(
        'worker %s uses %s MB and its %s children %s MB; together %s MB are the bound',
        r.name, r.rss_bytes / 1000000, r.children, r.children_bytes / 1000000,
        r.bytes_max / 1000000)
    FROM livewell.export_renderer r
    WHERE r.seen_at > p_now - interval '2 minutes'
        AND (r.rss_bytes + r.children_bytes) * 5 >= r.bytes_max * 4;
END
$$;
COMMENT ON FUNCTION livewell.rule_exports_memory IS 'Workers that render and use most of their memory.';
REVOKE ALL ON FUNCTION livewell.rule_exports_memory FROM PUBLIC;
