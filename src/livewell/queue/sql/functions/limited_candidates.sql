-- The first ready jobs of a limited queue, locked: lane 0 before lane 1, then rank, then id.
--
-- Called by: claim_limited, under the queue's row lock.
-- p_suspect: the worker is empty, so a job that was held by a dying worker may run, alone (see claim_jobs).
-- Index:     job_suspect_idx, job_ready_idx.
CREATE OR REPLACE FUNCTION livewell.limited_candidates(p_queue text, p_suspect boolean, p_limit integer, p_not bigint[])
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    v_found bigint[] := '{}';
BEGIN
    IF p_suspect THEN
        v_found := ARRAY(
            SELECT s.id FROM livewell.job s WHERE s.queue = p_queue AND s.state = 'ready' AND s.lost > 0 ORDER BY s.lane, s.rank, s.id LIMIT 1 FOR UPDATE SKIP LOCKED);
    END IF;
    IF cardinality(v_found) = 0 THEN
        v_found := ARRAY(
            SELECT r.id FROM livewell.job r WHERE r.queue = p_queue AND r.state = 'ready' AND r.lost = 0 AND r.id <> ALL (p_not)
            ORDER BY r.lane, r.rank, r.id LIMIT p_limit FOR UPDATE SKIP LOCKED);
    END IF;
    RETURN v_found;
END
$$;
COMMENT ON FUNCTION livewell.limited_candidates IS 'Locks and returns the first ready jobs of a limited queue.';
REVOKE ALL ON FUNCTION livewell.limited_candidates FROM PUBLIC;
