-- What is wrong now, the worst first: alerts that are fired before those that cool, then by level,
-- then by number. Columns as in list_alerts.
--
-- Called by: the page /alerts.
-- p_after_cooling, p_after_level, p_after_id: where the page before ended; NULL: from the beginning.
-- Index:     alert_urgent_idx; then alert_pkey for each that is shown.
CREATE OR REPLACE FUNCTION livewell.list_urgent_alerts(
    p_after_cooling boolean, p_after_level text, p_after_id bigint, p_limit integer
)
RETURNS TABLE (
    id bigint, rule text, subject text, level text, state text, summary text, fired_at timestamptz,
    held_at timestamptz, clear_since timestamptz, firings bigint, waiting bigint, sent bigint,
    refused bigint, unknown bigint, silenced bigint, silenced_until timestamptz
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT l.*
    FROM (
        SELECT a.id, a.state <> 'fired' AS is_cooling, a.level FROM livewell.alert a
        WHERE a.state <> 'armed'
            AND (
                p_after_id IS NULL
                OR (a.state <> 'fired', a.level, a.id)
                    > (p_after_cooling, p_after_level COLLATE "C", p_after_id)
            )
        ORDER BY a.state <> 'fired', a.level, a.id LIMIT least(greatest(p_limit, 1), 1000)
    ) o
    CROSS JOIN LATERAL livewell.list_alerts('all', o.id - 1, 1) l
    ORDER BY o.is_cooling, o.level, o.id;
END
$$;
COMMENT ON FUNCTION livewell.list_urgent_alerts IS
    'A page of the alerts that are wrong now, the worst first.';
REVOKE ALL ON FUNCTION livewell.list_urgent_alerts FROM PUBLIC;
