-- Lock the first ready jobs of a queue that are behind the marks of its lanes.
--
-- Called by: claim_jobs, for a worker that uses marks, with the planner settings of claim_jobs.
-- Index:     job_ready_idx.
-- p_ranks, p_ids: the marks, lane 0 and lane 1; NULL: from the beginning.
-- A worker uses marks while looking from the beginning is slow, as it is when somebody holds an old
-- snapshot and every job since then left an index entry that cannot be removed. What is enqueued
-- before a mark waits until somebody looks from the beginning again: docs/adr/0004-scan-mark.md.
CREATE OR REPLACE FUNCTION livewell.lock_behind_marks(
    p_queue text, p_limit integer, p_ranks bigint[], p_ids bigint[]
)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_found bigint[] := '{}';
BEGIN
    IF NOT EXISTS (
        SELECT FROM livewell.queue q
        WHERE q.name = p_queue
            AND q.paused_at IS NULL
            AND q.concurrency IS NULL
            AND q.group_limit IS NULL
            AND q.limiter IS NULL
    ) THEN
        RETURN v_found;
    END IF;
    FOR v_lane IN 0 .. 1 LOOP
        EXIT WHEN cardinality(v_found) >= p_limit;
        v_found := v_found || ARRAY(
            SELECT r.id FROM livewell.job r
            WHERE r.queue = p_queue
                AND r.lane = v_lane
                AND r.state = 'ready'
                AND r.lost = 0
                AND (r.rank, r.id) > (
                    coalesce(p_ranks[v_lane + 1], -9223372036854775808),
                    coalesce(p_ids[v_lane + 1], 0)
                )
            ORDER BY r.rank, r.id LIMIT p_limit - cardinality(v_found)
            FOR UPDATE SKIP LOCKED
        );
    END LOOP;
    RETURN v_found;
END
$$;
COMMENT ON FUNCTION livewell.lock_behind_marks IS
    'Locks and returns the first ready jobs of a queue behind the marks of its lanes.';
REVOKE ALL ON FUNCTION livewell.lock_behind_marks FROM PUBLIC;
