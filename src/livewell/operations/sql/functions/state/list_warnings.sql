-- Failures that were tolerated, by place and kind: how often in the last hour and in so many hours,
-- and the latest example.
--
-- Called by: CLI `warnings list`, GET /v1/warnings.
-- Index:     warning_hour_idx. Bounded: about 1,000 rows an hour are kept, and 720 hours are asked
--            for at most.
-- type: the type a warning is about, where it names one. p_after: the place and kind that the page
-- before ended with, joined by a line feed, which neither contains.
CREATE OR REPLACE FUNCTION livewell.list_warnings(
    p_hours integer, p_type text, p_after text, p_limit integer
)
RETURNS TABLE (
    place text, what text, type text, last_hour bigint, n bigint, per_hour float8,
    first_at timestamptz, last_at timestamptz, sample text, cursor text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
    v_hours integer := greatest(least(p_hours, 720), 1);
BEGIN
    RETURN QUERY
    SELECT o.*
    FROM (
        SELECT w.place, w.what, t.name,
            coalesce(sum(w.n) FILTER (WHERE w.hour = date_trunc('hour', v_now, 'UTC')), 0)::bigint,
            sum(w.n)::bigint, sum(w.n)::float8 / v_hours, min(w.first_at), max(w.last_at),
            (array_agg(w.sample ORDER BY w.last_at DESC))[1],
            (w.place || E'\n' || w.what) COLLATE "C" AS cursor
        FROM livewell.warning w
        LEFT JOIN livewell.data_type t ON t.name = split_part(w.what, ': ', 1)
        WHERE w.hour > v_now - make_interval(hours => v_hours)
        GROUP BY w.place, w.what, t.name
    ) o
    WHERE (p_type IS NULL OR o.name = p_type) AND o.cursor > p_after COLLATE "C"
    ORDER BY o.cursor LIMIT least(p_limit, 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_warnings IS 'A page of tolerated failures with their rates.';
REVOKE ALL ON FUNCTION livewell.list_warnings FROM PUBLIC;
