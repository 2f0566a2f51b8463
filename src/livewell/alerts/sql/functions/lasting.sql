-- For which of these subjects a condition has been seen at every evaluation for at least so long.
--
-- Called by: rule_calls_near_limit, rule_outbox_late, rule_queue_deep, rule_queue_stalled,
--            rule_type_silent, rule_upstream_silent, rule_watched_not_fresh; rules with "for 30 minutes", once per
--            evaluation, with all subjects for which the condition holds now, the rule's row locked
--            (evaluate_rule).
-- p_gap:     how long nobody may have looked: what happened meanwhile is not known, so the run
--            begins anew.
-- Bounded:   one row per subject; subjects that are not given lose theirs.
CREATE OR REPLACE FUNCTION livewell.lasting(
    p_rule text,
    p_subjects text[],
    p_for interval,
    p_now timestamptz,
    p_gap interval DEFAULT interval '5 minutes'
)
RETURNS TABLE (subject text, since timestamptz)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM livewell.alert_lasting l WHERE l.rule = p_rule AND l.subject <> ALL (p_subjects);
    INSERT INTO livewell.alert_lasting AS l (rule, subject, since, seen_at)
    SELECT DISTINCT p_rule, g, p_now, p_now FROM unnest(p_subjects) AS g
    ORDER BY g
    ON CONFLICT (rule, subject)
    DO UPDATE SET since = CASE WHEN l.seen_at < p_now - p_gap THEN p_now ELSE l.since END,
        seen_at = greatest(l.seen_at, p_now);
    RETURN QUERY
    SELECT l.subject, l.since FROM livewell.alert_lasting l
    WHERE l.rule = p_rule AND l.since <= p_now - p_for;
END
$$;
COMMENT ON FUNCTION livewell.lasting IS
    'Remembers for which subjects a condition holds, and answers those for which it has held for '
    'long enough.';
REVOKE ALL ON FUNCTION livewell.lasting FROM PUBLIC;
