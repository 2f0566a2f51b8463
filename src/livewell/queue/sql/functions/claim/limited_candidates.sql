-- The first ready jobs of a limited queue, locked: lane 0 before lane 1, then rank, then id.
--
-- Called by: pick_limited, under the queue's row lock.
-- p_suspect: the worker is empty, so a job that was held by a dying worker may run, alone (see
--            claim_jobs).
-- p_probe_of: the breaker of this limiter lets one call through: a job whose key is not failing
--             (R13). If there is none and p_failing allows it, the one that has failed least, and
--             longest ago.
-- Index:     job_suspect_idx, job_ready_idx, limiter_failing_pkey.
CREATE OR REPLACE FUNCTION livewell.limited_candidates(
    p_queue text,
    p_suspect boolean,
    p_limit integer,
    p_not bigint[],
    p_probe_of text DEFAULT NULL,
    p_failing boolean DEFAULT false
)
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
    IF p_probe_of IS NOT NULL THEN
        v_found := ARRAY(
            SELECT r.id FROM livewell.job r
            WHERE r.queue = p_queue
                AND r.state = 'ready'
                AND r.lost = 0
                AND r.id <> ALL (p_not)
                AND NOT EXISTS (
                    SELECT FROM livewell.limiter_failing f
                    WHERE f.limiter = p_probe_of
                        AND f.key = coalesce(r.group_key, r.unique_key, r.id::text)
                        AND f.failures > 0
                )
            ORDER BY r.lane, r.rank, r.id LIMIT p_limit FOR UPDATE SKIP LOCKED
        );
        IF cardinality(v_found) > 0 OR NOT p_failing THEN
            RETURN v_found;
        END IF;
        RETURN ARRAY(
            SELECT l.id
            FROM (
                (
                    SELECT j.id FROM livewell.job j
                    WHERE j.queue = p_queue AND j.state = 'ready' AND j.lost = 0
                    LIMIT 5000
                )
                UNION ALL
                (
                    SELECT j.id FROM livewell.job j
                    WHERE p_suspect AND j.queue = p_queue AND j.state = 'ready' AND j.lost > 0
                    LIMIT 5000
                )
            ) r
            JOIN livewell.job l ON l.id = r.id AND l.id <> ALL (p_not)
            CROSS JOIN LATERAL (
                SELECT max(f.failures) AS failures, max(f.failed_at) AS failed_at
                FROM livewell.limiter_failing f
                WHERE f.limiter = p_probe_of
                    AND f.key = coalesce(l.group_key, l.unique_key, l.id::text)
            ) k
            ORDER BY coalesce(k.failures, 0), coalesce(k.failed_at, '-infinity'), l.lane, l.rank,
                l.id
            LIMIT 1 FOR UPDATE OF l SKIP LOCKED
        );
    END IF;
    IF p_suspect THEN
        v_found := ARRAY(
            SELECT s.id FROM livewell.job s
            WHERE s.queue = p_queue AND s.state = 'ready' AND s.lost > 0
            ORDER BY s.lane, s.rank, s.id LIMIT 1 FOR UPDATE SKIP LOCKED
        );
    END IF;
    IF cardinality(v_found) = 0 THEN
        v_found := ARRAY(
            SELECT r.id FROM livewell.job r
            WHERE r.queue = p_queue AND r.state = 'ready' AND r.lost = 0 AND r.id <> ALL (p_not)
            ORDER BY r.lane, r.rank, r.id LIMIT p_limit FOR UPDATE SKIP LOCKED
        );
    END IF;
    RETURN v_found;
END
$$;
COMMENT ON FUNCTION livewell.limited_candidates IS
    'Locks and returns the first ready jobs of a limited queue.';
REVOKE ALL ON FUNCTION livewell.limited_candidates FROM PUBLIC;
