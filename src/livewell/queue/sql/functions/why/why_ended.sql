-- How a job ended that is not in the live table any more: dead, and why; succeeded or cancelled,
-- with its note; unknown, if nothing is left of it.
--
-- Called by: why_job, with its planner settings. Index: dead_job_pkey, the primary key of history.
CREATE OR REPLACE FUNCTION livewell.why_ended(
    p_id bigint,
    OUT reason text,
    OUT name text,
    OUT since timestamptz
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    SELECT x.reason, x.name, x.since INTO reason, name, since
    FROM (
        SELECT 'dead' AS reason, d.reason AS name, d.died_at AS since FROM livewell.dead_job d
        WHERE d.id = p_id
        UNION ALL
        SELECT h.outcome::text, nullif(h.note, ''), h.finished_at FROM livewell.job_history h
        WHERE h.id = p_id
        UNION ALL
        SELECT 'unknown', NULL, NULL
        LIMIT 1
    ) x;
END
$$;
COMMENT ON FUNCTION livewell.why_ended IS
    'How a job ended that is no longer live: dead, succeeded, cancelled or unknown.';
REVOKE ALL ON FUNCTION livewell.why_ended FROM PUBLIC;
