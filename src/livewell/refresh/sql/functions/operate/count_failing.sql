-- The failing keys of a type, by reason: how many, since when the first fails, and one of them.
--
-- Called by: the dashboard.
-- Index:     ledger_failing_idx.
-- Bounded:   10,000 keys are counted; is_cut says that there are more.
-- Failing means that the last attempt failed. While its value is not stale, the verdict of such a
-- key is another one.
CREATE OR REPLACE FUNCTION livewell.count_failing(p_type text)
RETURNS TABLE (
    reason text, keys bigint, since timestamptz, example text, error text, is_cut boolean)
LANGUAGE sql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
    SELECT g.reason, count(*), min(g.failing_since), min(g.key),
           (array_agg(g.error ORDER BY g.key))[1], sum(count(*)) OVER () >= 10000
    FROM (
        SELECT coalesce(l.reason, 'unknown') AS reason, l.failing_since, l.key, l.error
        FROM livewell.ledger l
        WHERE l.data_type = p_type AND l.failing_since IS NOT NULL
        LIMIT 10000) g
    GROUP BY g.reason
    ORDER BY count(*) DESC, g.reason
    LIMIT 50
$$;
COMMENT ON FUNCTION livewell.count_failing IS 'Failing keys of a type by reason, up to 10,000.';
REVOKE ALL ON FUNCTION livewell.count_failing FROM PUBLIC;
