-- Dead letters that match a filter, counted by queue, task and reason; the largest groups first.
--
-- Called by: the page of dead letters.
-- Index:     dead_job_died_idx, backwards: the newest p_look letters are counted.
-- looked < p_look: those were all.
CREATE OR REPLACE FUNCTION livewell.group_dead(p_filter jsonb, p_look integer, p_limit integer)
RETURNS TABLE (
    queue text, task text, reason text, n bigint, first_at timestamptz, last_at timestamptz,
    error text, looked bigint, groups bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_queue     text := p_filter ->> 'queue';
    v_kind      text := p_filter ->> 'task';
    v_reason    text := p_filter ->> 'reason';
    v_group     text := p_filter ->> 'group';
    v_key       text := p_filter ->> 'key';
    v_batch     bigint := (p_filter ->> 'batch')::bigint;
    v_since     timestamptz := coalesce((p_filter ->> 'since')::timestamptz, '-infinity');
    v_until     timestamptz := coalesce((p_filter ->> 'until')::timestamptz, 'infinity');
BEGIN
    RETURN QUERY
    WITH seen AS MATERIALIZED (
        SELECT d.id, d.queue, d.kind, d.reason, d.unique_key, d.group_key, d.batch_id,
            d.died_at
        FROM livewell.dead_job d
        WHERE d.died_at >= v_since AND d.died_at < v_until
        ORDER BY d.died_at DESC LIMIT p_look
    ),
    grouped AS (
        SELECT s.queue, s.kind, s.reason, count(*) AS n, min(s.died_at) AS first_at,
            max(s.died_at) AS last_at, max(s.id) AS sample
        FROM seen s
        WHERE (v_queue IS NULL OR s.queue = v_queue)
            AND (v_kind IS NULL OR s.kind = v_kind)
            AND (v_reason IS NULL OR s.reason = v_reason)
            AND (v_group IS NULL OR s.group_key = v_group)
            AND (v_key IS NULL OR s.unique_key = v_key)
            AND (v_batch IS NULL OR s.batch_id = v_batch)
        GROUP BY s.queue, s.kind, s.reason
    )
    SELECT g.queue, g.kind, g.reason, g.n, g.first_at, g.last_at,
        (SELECT left(e.error, 400) FROM livewell.dead_job e WHERE e.id = g.sample),
        (SELECT count(*) FROM seen), (SELECT count(*) FROM grouped)
    FROM (SELECT * FROM grouped o ORDER BY o.n DESC, o.queue, o.kind, o.reason LIMIT p_limit) g
    ORDER BY g.n DESC, g.queue, g.kind, g.reason;
END
$$;
COMMENT ON FUNCTION livewell.group_dead IS
    'The newest dead letters by queue, task and reason, with the error of one of each group.';
REVOKE ALL ON FUNCTION livewell.group_dead FROM PUBLIC;
