-- Dead letters that match a filter: a bounded look by id.
--
-- Called by: count_matching, step_bulk_act.
-- Index:     dead_job_queue_idx with a queue, dead_job_pkey without. At most p_look rows are read.
-- since and until are about died_at. What died after p_before is left out, also when it is a letter
-- that was redriven and died again.
CREATE OR REPLACE FUNCTION livewell.match_dead(
    p_filter jsonb, p_after bigint, p_up_to bigint, p_before timestamptz, p_look integer,
    p_limit integer
)
RETURNS livewell.match_page
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_queue     text := p_filter ->> 'queue';
    v_kind      text := p_filter ->> 'task';
    v_reason    text := p_filter ->> 'reason';
    v_group     text := p_filter ->> 'group';
    v_key       text := p_filter ->> 'key';
    v_batch     bigint := (p_filter ->> 'batch')::bigint;
    v_since     timestamptz := coalesce((p_filter ->> 'since')::timestamptz, '-infinity');
    v_until     timestamptz := coalesce((p_filter ->> 'until')::timestamptz, 'infinity');
    v_page      livewell.match_page;
BEGIN
    WITH seen AS MATERIALIZED (
        SELECT d.id,
            (v_kind IS NULL OR d.kind = v_kind)
                AND (v_reason IS NULL OR d.reason = v_reason)
                AND (v_group IS NULL OR d.group_key = v_group)
                AND (v_key IS NULL OR d.unique_key = v_key)
                AND (v_batch IS NULL OR d.batch_id = v_batch)
                AND d.died_at >= v_since AND d.died_at < v_until
                AND d.died_at <= p_before AS is_match
        FROM livewell.dead_job d
        WHERE d.id > p_after AND d.id <= p_up_to AND (v_queue IS NULL OR d.queue = v_queue)
        ORDER BY d.id LIMIT p_look
    ),
    matched AS (
        SELECT s.id FROM seen s WHERE s.is_match ORDER BY s.id LIMIT p_limit
    )
    SELECT m.ids, CASE WHEN m.n = p_limit THEN m.last_id ELSE coalesce(s.last_id, p_after) END,
        s.n, m.n < p_limit AND s.n < p_look
    INTO v_page.ids, v_page.cursor_id, v_page.looked, v_page.is_last
    FROM (
        SELECT coalesce(array_agg(a.id ORDER BY a.id), '{}') AS ids, count(*) AS n,
            max(a.id) AS last_id
        FROM matched a
    ) m, (SELECT count(*) AS n, max(b.id) AS last_id FROM seen b) s;
    RETURN v_page;
END
$$;
COMMENT ON FUNCTION livewell.match_dead IS
    'The ids of dead letters that match a filter, of a bounded number of rows after an id.';
REVOKE ALL ON FUNCTION livewell.match_dead FROM PUBLIC;
