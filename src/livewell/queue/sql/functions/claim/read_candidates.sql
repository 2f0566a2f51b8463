-- What a claim of a limited queue needs to know about each job that it may take: lane 0 before lane
-- 1, then rank, then id.
--
-- Called by: pick_limited, with what limited_candidates has locked in an earlier statement.
-- Index:     job_pkey.
-- p_kinds, p_batches: see pick_limited. p_estimates: units that a call is expected to use, by kind;
--            p_estimate: of other kinds.
-- call_name: jobs with the same one may share a call of at most `batch` jobs. joinable: others may
--            join its call; a call key that is the job's own unique key is shared with nobody.
-- The planner settings are those of claim_limited.
CREATE OR REPLACE FUNCTION livewell.read_candidates(
    p_ids bigint[], p_kinds text[], p_batches integer[], p_estimates jsonb, p_estimate bigint
)
RETURNS TABLE (
    id bigint, lane smallint, group_key text, lost smallint, batch integer, call_name text,
    joinable boolean, units bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT j.id, j.lane, j.group_key, j.lost, coalesce(b.batch, 1),
        j.kind || E'\x01' || coalesce(j.call_key, ''),
        b.batch > 1 AND (j.call_key IS NULL OR j.call_key IS DISTINCT FROM j.unique_key),
        coalesce(j.units, (p_estimates ->> j.kind)::float8::bigint, p_estimate)
    FROM livewell.job j
    LEFT JOIN unnest(p_kinds, p_batches) AS b (kind, batch) ON b.kind = j.kind
    WHERE j.id = ANY (p_ids)
    ORDER BY j.lane, j.rank, j.id;
END
$$;
COMMENT ON FUNCTION livewell.read_candidates IS
    'The jobs that a claim of a limited queue may take, in order, with what one call may carry.';
REVOKE ALL ON FUNCTION livewell.read_candidates FROM PUBLIC;
