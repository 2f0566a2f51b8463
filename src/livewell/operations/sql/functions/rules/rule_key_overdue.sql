-- Rule key_overdue (P1): a watched key has been due for more than five times its time to live, and
-- for two minutes at least: the due check does not come to it.
--
-- Called by: evaluate_rule. Bounds and what is not counted: due_watched.
-- A key that fails or is backed off is tried again at its own pace and does not raise this:
-- keys_failing of the doctor and the share of what is fresh tell of those.
CREATE OR REPLACE FUNCTION livewell.rule_key_overdue(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT d.queue,
        format(
            '%s: %s %s is watched and has been due for %s s, '
            '%s times its time to live; %s keys are due',
            d.queue, d.worst_type, left(d.worst_key, 60),
            floor(extract(epoch FROM p_now - d.worst_at)), floor(d.worst_times), d.due
        )
    FROM livewell.due_watched(p_now) d
    WHERE d.worst_times > 5 AND d.worst_at < p_now - interval '2 minutes';
END
$$;
COMMENT ON FUNCTION livewell.rule_key_overdue IS
    'Queues of refreshes with a watched key that has been due for more than five times its time '
    'to live.';
REVOKE ALL ON FUNCTION livewell.rule_key_overdue FROM PUBLIC;
