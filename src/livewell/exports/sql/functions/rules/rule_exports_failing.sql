-- Rule exports_failing (P1): of what ended in 15 minutes at least 20 %, and five, failed for reasons
-- that are not the document's. One row for the reason that is met most.
--
-- Called by: evaluate_rule.
-- Index:     export_ended_idx
-- What is wrong with a document is its user's to mend: nobody is woken for an emoji.
CREATE OR REPLACE FUNCTION livewell.rule_exports_failing(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    RETURN QUERY
    SELECT 'exports'::text, format(
        '%s of %s exports failed in 15 minutes, most of them with the reason %s',
        n.failed, n.ended, n.most)
    FROM (
        SELECT count(*) AS ended, count(*) FILTER (WHERE r.ours) AS failed,
            mode() WITHIN GROUP (ORDER BY r.reason) FILTER (WHERE r.ours) AS most
        FROM (
            SELECT e.reason, e.state = 'failed' AND e.reason IN (
                'deadline', 'died', 'internal', 'library_missing', 'lost', 'memory', 'store_full',
                'store_unreachable'
            ) AS ours
            FROM livewell.export e
            WHERE e.finished_at > p_now - interval '15 minutes' AND e.state <> 'cancelled'
        ) r
    ) n
    WHERE n.failed >= 5 AND n.failed * 5 >= n.ended;
END
$$;
COMMENT ON FUNCTION livewell.rule_exports_failing IS 'Whether many exports fail that could have been made.';
REVOKE ALL ON FUNCTION livewell.rule_exports_failing FROM PUBLIC;
