-- Rule singleton_held (P0): one run has held a singleton for more than 10 minutes, and holds it
-- still.
--
-- Called by: evaluate_rule. A table of a few rows.
-- The due check is not a run: whoever does it renews its term for as long as it lives, and a term
-- that is not renewed ends by itself.
CREATE OR REPLACE FUNCTION livewell.rule_singleton_held(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_due_check text := livewell.due_check_name();
BEGIN
    RETURN QUERY
    SELECT s.name,
        format(
            '%s: held by %s for %s min', s.name, s.holder,
            floor(extract(epoch FROM p_now - s.acquired_at) / 60)
        )
    FROM livewell.singleton s
    WHERE s.expires_at > p_now
        AND s.acquired_at < p_now - interval '10 minutes'
        AND s.name <> v_due_check;
END
$$;
COMMENT ON FUNCTION livewell.rule_singleton_held IS
    'Singletons that one run has held for more than 10 minutes.';
REVOKE ALL ON FUNCTION livewell.rule_singleton_held FROM PUBLIC;
