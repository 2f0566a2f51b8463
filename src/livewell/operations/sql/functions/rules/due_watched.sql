-- What waits in the ledger for somebody who watches it, by queue: how much, since when, and the key
-- that has waited the most times its time to live.
--
-- Called by: rule_queue_deep, rule_queue_stalled, rule_key_overdue, rule_upstream_silent, once a
--            minute each. Refreshes that cannot go wait in the ledger and not in the queue, so
--            rules on work look here too.
-- Index:     ledger_due_idx, subscription_key_idx, viewer_session_pkey.
-- Bounded:   of each upstream the 500 keys that are due for longest and the 500 that are due for
--            shortest are looked at, and 10,000 are counted; due is their number times the share of
--            them that is watched.
-- Watched:   a session that was seen within five minutes. Keys whose viewers left are due too until
--            the due check parks them, and it cannot while calls are stopped.
-- Not here: what is paused or parked, because somebody said so; what is backed off, because it is
-- not due. What fails is counted as waiting, and never is the worst.
CREATE OR REPLACE FUNCTION livewell.due_watched(p_now timestamptz)
RETURNS TABLE (
    upstream text, queue text, due bigint, oldest_at timestamptz, worst_type text, worst_key text,
    worst_at timestamptz, worst_times float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    c_page      CONSTANT integer := 500;
    c_count_max CONSTANT integer := 10000;
    v_name      text;
BEGIN
    FOR v_name IN
        SELECT u.name FROM livewell.upstream u WHERE u.paused_at IS NULL ORDER BY u.name LIMIT 1000
    LOOP
        RETURN QUERY
        WITH page AS MATERIALIZED (
            (
                SELECT l.data_type, l.key, l.due_at, l.failing_since, l.ttl_override
                FROM livewell.ledger l
                WHERE l.upstream = v_name AND l.due_at <= p_now
                ORDER BY l.due_at LIMIT c_page
            )
            UNION
            (
                SELECT l.data_type, l.key, l.due_at, l.failing_since, l.ttl_override
                FROM livewell.ledger l
                WHERE l.upstream = v_name AND l.due_at <= p_now
                ORDER BY l.due_at DESC LIMIT c_page
            )
        ),
        looked AS MATERIALIZED (
            SELECT p.data_type, p.key, p.due_at, t.pool,
                CASE
                    WHEN p.failing_since IS NULL
                        THEN (
                            extract(epoch FROM p_now - p.due_at) / extract(
                                epoch FROM coalesce(p.ttl_override, t.ttl)
                            )
                        )::float8
                END AS times
            FROM page p
            JOIN livewell.data_type t ON t.name = p.data_type
            -- One look by index for each key: as a semi-join, statistics of a new table make it
            -- read all subscriptions for each.
            CROSS JOIN LATERAL (
                SELECT FROM livewell.subscription s
                JOIN livewell.viewer_session v ON v.id = s.session_id
                WHERE s.data_type = p.data_type
                    AND s.key = p.key
                    AND v.seen_at > p_now - interval '5 minutes'
                LIMIT 1
            ) seen
            WHERE t.paused_at IS NULL AND t.parked_reason IS NULL
        )
        SELECT v_name, livewell.refresh_queue(v_name, w.pool),
            round(
                (
                    SELECT count(*)
                    FROM (
                        SELECT FROM livewell.ledger l
                        WHERE l.upstream = v_name AND l.due_at <= p_now
                        LIMIT c_count_max
                    ) o
                ) * count(*)::numeric / (SELECT count(*) FROM page)
            )::bigint,
            min(w.due_at), (array_agg(w.data_type ORDER BY w.times DESC NULLS LAST, w.key))[1],
            (array_agg(w.key ORDER BY w.times DESC NULLS LAST, w.key))[1],
            (array_agg(w.due_at ORDER BY w.times DESC NULLS LAST, w.key))[1], max(w.times)
        FROM looked w
        GROUP BY w.pool;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.due_watched IS
    'Watched keys that are due, by queue: how many, since when, and which has waited longest for '
    'its time to live.';
REVOKE ALL ON FUNCTION livewell.due_watched FROM PUBLIC;
