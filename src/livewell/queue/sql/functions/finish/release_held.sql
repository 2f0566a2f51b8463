-- Let go of held jobs: for each key the one that waits behind it, for each group as many as left
-- it.
--
-- Called by: job_ended, settle_jobs, promote_held, with one entry per job that left (NULL: no key,
--            no group).
-- Index:     job_unique_held_idx, job_unique_key_idx, job_group_idx.
-- A job let go too many is no harm: claim_limited counts what runs and holds it again. SKIP LOCKED:
-- whoever has the row is releasing or cancelling it.
-- The rank stays: whoever waited longest is still first.
CREATE OR REPLACE FUNCTION livewell.release_held(p_queues text[], p_keys text[], p_groups text[])
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_n     integer := 0;
    v_m     integer := 0;
BEGIN
    -- Lowest id first: two callers with the same keys never wait for each other crosswise.
    WITH next AS (
        SELECT h.id
        FROM (
            SELECT DISTINCT k.queue, k.key FROM unnest(p_queues, p_keys) AS k (queue, key)
            WHERE k.key IS NOT NULL
        ) k
        JOIN livewell.job h ON h.queue = k.queue AND h.unique_key = k.key AND h.held_by = 'k'
        WHERE NOT EXISTS (
            SELECT FROM livewell.job c
            WHERE c.queue = k.queue AND c.unique_key = k.key AND c.held_by IS DISTINCT FROM 'k'
        )
        ORDER BY h.id FOR UPDATE OF h SKIP LOCKED
    )
    UPDATE livewell.job j
    SET held_by = NULL,
        state = CASE WHEN j.run_at > v_now THEN 'delayed' ELSE 'ready' END::livewell.job_state
    FROM next n
    WHERE j.id = n.id AND j.held_by = 'k';
    GET DIAGNOSTICS v_n = ROW_COUNT;

    WITH left_group AS (
        -- A key of a limiter is one group over all its queues.
        SELECT w.name AS queue, g.group_key, count(*) AS n
        FROM unnest(p_queues, p_groups) AS g (queue, group_key)
        JOIN livewell.queue q ON q.name = g.queue
        LEFT JOIN livewell.limiter l ON l.name = q.limiter AND l.per_key IS NOT NULL
        JOIN livewell.queue w ON w.name = q.name OR w.limiter = l.name
        WHERE g.group_key IS NOT NULL
        GROUP BY w.name, g.group_key
    ),
    next AS (
        SELECT h.id
        FROM left_group g
        CROSS JOIN LATERAL (
            SELECT j.id FROM livewell.job j
            WHERE j.queue = g.queue
                AND j.group_key = g.group_key
                AND j.state = 'held'
                AND j.held_by = 'g'
            ORDER BY j.lane, j.rank, j.id LIMIT g.n FOR UPDATE SKIP LOCKED
        ) h
    )
    UPDATE livewell.job j
    SET held_by = NULL, state = 'ready'
    FROM next n
    WHERE j.id = n.id;
    GET DIAGNOSTICS v_m = ROW_COUNT;
    RETURN v_n + v_m;
END
$$;
COMMENT ON FUNCTION livewell.release_held IS
    'Makes ready what waited for the given keys and groups; answers how many.';
REVOKE ALL ON FUNCTION livewell.release_held FROM PUBLIC;
