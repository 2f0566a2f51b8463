-- May one more job of this group run: fewer than the queue's group limit run in the queue, and
-- fewer than per_key in all queues of the limiter, those picked just now included.
--
-- Called by: pick_limited, under the row locks of the queue and the limiter.
-- Index:     job_group_idx.
CREATE OR REPLACE FUNCTION livewell.group_has_room(
    p_queue text,
    p_group_limit integer,
    p_queues text[],
    p_per_key integer,
    p_group text,
    p_taken bigint[]
)
RETURNS boolean
LANGUAGE sql
SET search_path = ''
SET enable_seqscan = off
AS $$
    SELECT (
        p_group_limit IS NULL
        OR p_group_limit > t.n + (
            SELECT count(*) FROM livewell.job j
            WHERE j.queue = p_queue AND j.group_key = p_group AND j.state = 'running'
        )
    )
        AND (
            p_per_key IS NULL
            OR p_per_key > t.n + (
                SELECT count(*) FROM livewell.job j
                WHERE j.queue = ANY (p_queues) AND j.group_key = p_group AND j.state = 'running'
            )
        )
    FROM (
        SELECT count(*) AS n FROM livewell.job j
        WHERE j.id = ANY (p_taken) AND j.group_key = p_group
    ) t
$$;
COMMENT ON FUNCTION livewell.group_has_room IS
    'Whether a group is below its limit, in its queue and with its limiter.';
REVOKE ALL ON FUNCTION livewell.group_has_room FROM PUBLIC;
