-- What became of the refreshes of a type, and what they cost, for each hour of the last day.
--
-- Called by: the dashboard.
-- Index:     refresh_count_pkey, one probe for each hour.
-- done:      answers that were stored, or confirmed what is stored. refused: all that brought
--            nothing. bytes: as the budget of the upstream counts them. calls: those that were
--            answered; NULL in an hour in which nobody counted them.
CREATE OR REPLACE FUNCTION livewell.list_refresh_hours(p_type text)
RETURNS TABLE (hour timestamptz, done bigint, refused bigint, bytes bigint, calls bigint)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_done      CONSTANT text[] := '{stored,corrected,unchanged,missing}';
    c_neither   CONSTANT text[] := '{type_changed,singly,unproven,forgotten,fenced}';
    v_hour      timestamptz := date_trunc('hour', livewell.now(), 'UTC');
    v_counts    text;
BEGIN
    SELECT u.counts INTO v_counts FROM livewell.data_type t
    JOIN livewell.upstream u ON u.name = t.upstream WHERE t.name = p_type;
    RETURN QUERY
    SELECT h.at, coalesce(o.done, 0), coalesce(o.refused, 0), coalesce(o.bytes, 0),
           CASE WHEN o.counted THEN o.calls WHEN o.counted IS NULL THEN 0 END
    FROM generate_series(v_hour - interval '23 hours', v_hour, interval '1 hour') AS h (at)
    LEFT JOIN LATERAL (
        SELECT sum(c.n) FILTER (WHERE c.outcome = ANY (c_done))::bigint AS done,
               sum(c.n) FILTER (
                   WHERE c.outcome <> ALL (c_done) AND c.outcome <> ALL (c_neither)
               )::bigint AS refused,
               sum(CASE v_counts
                   WHEN 'wire' THEN c.wire_bytes
                   WHEN 'decoded' THEN c.decoded_bytes
                   ELSE greatest(c.wire_bytes, c.decoded_bytes) END)::bigint AS bytes,
               sum(c.calls)::bigint AS calls, bool_and(c.calls IS NOT NULL) AS counted
        FROM livewell.refresh_count c
        WHERE c.hour = h.at AND c.data_type = p_type) o ON true
    ORDER BY h.at;
END
$$;
COMMENT ON FUNCTION livewell.list_refresh_hours IS
    'Refreshes of a type, their bytes and calls, for each hour of the last day.';
REVOKE ALL ON FUNCTION livewell.list_refresh_hours FROM PUBLIC;
