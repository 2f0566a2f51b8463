-- Which watched key has been due for longest?
--
-- Called by: the dashboard, for its first page.
-- Index:     ledger_due_idx (upstream, due_at), from the oldest on, for each upstream.
-- Bounded:   200 upstreams by name, and the first 100 due keys of each: a watched key behind so many
--            that nobody watches (class 0) is not found, and the dashboard then names none.
CREATE OR REPLACE FUNCTION livewell.oldest_due()
RETURNS TABLE (data_type text, key text, due_at timestamptz, seconds float8)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT k.data_type, k.key, k.due_at, extract(epoch FROM v_now - k.due_at)::float8
    FROM (SELECT a.name FROM livewell.upstream a ORDER BY a.name LIMIT 200) u
    CROSS JOIN LATERAL (
        SELECT o.data_type, o.key, o.due_at FROM (
            SELECT l.data_type, l.key, l.due_at, l.demand_class FROM livewell.ledger l
            WHERE l.upstream = u.name AND l.due_at <= v_now
            ORDER BY l.due_at LIMIT 100) o
        WHERE o.demand_class <> 0
        ORDER BY o.due_at LIMIT 1) k
    ORDER BY k.due_at LIMIT 1;
END
$$;
COMMENT ON FUNCTION livewell.oldest_due IS
    'The watched key that has been due for longest, of a bounded look.';
REVOKE ALL ON FUNCTION livewell.oldest_due FROM PUBLIC;
