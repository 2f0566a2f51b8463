-- The keys of a type that most people look at, as list_type_keys shows keys, each with how many do.
--
-- Called by: the dashboard.
-- Index:     ledger_class_idx, from the highest class of demand down; then what count_viewers uses.
-- Bounded:   1,000 rows of each class are looked at, and the first 50 of this type counted. A class
--            is 2ⁿ⁻¹ to 2ⁿ - 1 viewers when the due check last counted: a key that became popular
--            just now may be missing until it does again.
-- Counts only: who looks is nobody's business here (L4).
CREATE OR REPLACE FUNCTION livewell.list_watched_keys(p_type text, p_limit integer)
RETURNS TABLE (
    key text, viewers integer, verdict text, checked_at timestamptz, stale_at timestamptz,
    source_at timestamptz, failing_since timestamptz, reason text, retry_at timestamptz,
    own_ttl_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_counted_max CONSTANT integer := 50;
    c_looked_max  CONSTANT integer := 1000;
    v_now       timestamptz := livewell.now();
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_keys      text[] := '{}';
BEGIN
    v_type.definition := NULL;
    v_type.columns := NULL;
    FOR v_class IN REVERSE 10..1 LOOP
        -- Of a scheduled type the class is negative.
        v_keys := v_keys || ARRAY(
            SELECT o.key FROM (
                SELECT l.key, l.data_type FROM livewell.ledger l
                WHERE l.upstream = v_type.upstream AND l.due_at IS NOT NULL
                  AND l.demand_class = CASE v_type.strategy
                      WHEN 'scheduled' THEN -v_class ELSE v_class END
                LIMIT c_looked_max) o
            WHERE o.data_type = p_type LIMIT c_counted_max - cardinality(v_keys));
        EXIT WHEN cardinality(v_keys) >= c_counted_max;
    END LOOP;
    RETURN QUERY
    SELECT l.key, k.viewers, livewell.verdict(v_type, l, v_now), l.checked_at,
           nullif(livewell.stale_at(v_type, l), '-infinity'), l.source_at, l.failing_since,
           l.reason, CASE WHEN l.retry_at > v_now THEN l.retry_at END,
           extract(epoch FROM l.ttl_override)::float8
    FROM (
        SELECT u.key, livewell.count_viewers(p_type, u.key) AS viewers
        FROM unnest(v_keys) AS u (key)) k
    JOIN livewell.ledger l ON l.data_type = p_type AND l.key = k.key
    WHERE k.viewers > 0
    ORDER BY k.viewers DESC, l.key LIMIT p_limit;
END
$$;
COMMENT ON FUNCTION livewell.list_watched_keys IS
    'The keys of a type that most people look at now, with how many do.';
REVOKE ALL ON FUNCTION livewell.list_watched_keys FROM PUBLIC;
