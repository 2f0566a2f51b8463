-- Batches with their counts, the newest first.
--
-- Called by: the page /work/batches. p_before: the id that the page before ended with.
-- Index:     batch_pkey, backwards; job_batch_idx for those that are not sealed, of which so many
--            jobs are counted at most: remaining_is_more says that there are more.
-- state:     as show_batch has it.
CREATE OR REPLACE FUNCTION livewell.list_batches(p_before bigint, p_limit integer)
RETURNS TABLE (
    id bigint, state text, remaining bigint, remaining_is_more boolean, succeeded bigint,
    failed bigint, cancelled bigint, created_at timestamptz, sealed_at timestamptz,
    ended_at timestamptz, follow_id bigint, follow_when text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_counted   CONSTANT integer := 1000;
BEGIN
    RETURN QUERY
    SELECT b.id,
        CASE
            WHEN b.sealed_at IS NULL THEN 'open'
            WHEN b.remaining > 0 THEN 'running'
            WHEN b.ended_at IS NULL THEN 'failed'
            ELSE 'ended'
        END,
        least(l.n, coalesce(b.remaining, c_counted)), b.remaining IS NULL AND l.n > c_counted,
        b.succeeded, b.failed, b.cancelled, b.created_at, b.sealed_at, b.ended_at, b.follow_id,
        b.follow_when
    FROM (
        SELECT * FROM livewell.batch o
        WHERE o.id < coalesce(p_before, 9223372036854775807)
        ORDER BY o.id DESC LIMIT least(greatest(p_limit, 1), 100)
    ) b
    CROSS JOIN LATERAL (
        SELECT coalesce(
            b.remaining, (
                SELECT count(*)
                FROM (
                    SELECT FROM livewell.job j WHERE j.batch_id = b.id LIMIT c_counted + 1
                ) x
            )
        ) AS n
    ) l
    ORDER BY b.id DESC;
END
$$;
COMMENT ON FUNCTION livewell.list_batches IS 'A page of batches with their counts, the newest first.';
REVOKE ALL ON FUNCTION livewell.list_batches FROM PUBLIC;
