-- Whether a key is one that the type can have. Strangers' keys are checked by this before anything
-- is stored or asked for.
--
-- Called by: answer_pairs, read_through, why_key; set_ttl(), add_universe(), and whoever takes keys
--            from outside.
-- A pattern is of the small language of refresh/definition/key_pattern.py: no groups, alternatives
-- or unbounded repeats, so the time is bounded by its length and the key's.
CREATE OR REPLACE FUNCTION livewell.key_fits(p_pattern text, p_key text)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
SET search_path = ''
AS $$
    SELECT octet_length(p_key) BETWEEN 1 AND 200
        AND p_key COLLATE "C" ~ ('^(?:' || p_pattern || ')$')
$$;
COMMENT ON FUNCTION livewell.key_fits IS 'Whether the whole key matches the pattern of its type.';
REVOKE ALL ON FUNCTION livewell.key_fits FROM PUBLIC;
