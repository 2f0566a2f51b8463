-- How many jobs match a filter: exact up to p_limit; is_all is false if there may be more.
--
-- Called by: the dashboard, above a list of jobs.
-- Index:     as find_jobs; the look is bounded like its own.
CREATE OR REPLACE FUNCTION livewell.count_jobs(
    p_filter jsonb, p_limit integer, p_look integer,
    OUT n integer, OUT looked integer, OUT is_all boolean
)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT cardinality(f.ids), f.looked, f.next IS NULL
    FROM livewell.find_jobs(p_filter, NULL, true, p_limit, p_look) f
$$;
COMMENT ON FUNCTION livewell.count_jobs IS
    'How many jobs match a filter, from a bounded look, and whether that is all of them.';
REVOKE ALL ON FUNCTION livewell.count_jobs FROM PUBLIC;
