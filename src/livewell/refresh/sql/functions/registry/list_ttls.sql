-- The keys with a time to live of their own, by type and key, after a given one.
--
-- Called by: `livewell types ttl list`, the API. Index: ledger_override_idx.
CREATE OR REPLACE FUNCTION livewell.list_ttls(
    p_type text DEFAULT NULL, p_after_type text DEFAULT '', p_after_key text DEFAULT '',
    p_limit integer DEFAULT 100)
RETURNS TABLE (data_type text, key text, ttl interval, type_ttl interval)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT l.data_type, l.key, l.ttl_override, t.ttl
    FROM livewell.ledger l
    JOIN livewell.data_type t ON t.name = l.data_type
    WHERE l.ttl_override IS NOT NULL
      AND (l.data_type, l.key) > (p_after_type COLLATE "C", p_after_key COLLATE "C")
      AND (p_type IS NULL OR l.data_type = p_type)
    ORDER BY l.data_type, l.key
    LIMIT least(p_limit, 1000)
$$;
COMMENT ON FUNCTION livewell.list_ttls IS 'Keys with a time to live of their own.';
REVOKE ALL ON FUNCTION livewell.list_ttls FROM PUBLIC;
