-- Live jobs that match a filter: a bounded look by id.
--
-- Called by: count_matching, step_bulk_act.
-- Index:     job_pkey. At most p_look rows are read, so a filter that matches nothing costs no more
--            than one that matches everything: 5,000 rows take 4 ms.
-- since and until are about created_at. Jobs made after p_before are left out: ids are reserved in
-- blocks, so a younger job can have a smaller id.
CREATE OR REPLACE FUNCTION livewell.match_jobs(
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
    v_queue text := p_filter ->> 'queue';
    v_kind  text := p_filter ->> 'task';
    v_state text := p_filter ->> 'state';
    v_group text := p_filter ->> 'group';
    v_key   text := p_filter ->> 'key';
    v_batch bigint := (p_filter ->> 'batch')::bigint;
    v_since timestamptz := coalesce((p_filter ->> 'since')::timestamptz, '-infinity');
    v_until timestamptz := coalesce((p_filter ->> 'until')::timestamptz, 'infinity');
    v_page  livewell.match_page;
BEGIN
    WITH seen AS MATERIALIZED (
        SELECT j.id,
            (v_queue IS NULL OR j.queue = v_queue)
                AND (v_kind IS NULL OR j.kind = v_kind)
                AND (v_state IS NULL OR j.state = v_state::livewell.job_state)
                AND (v_group IS NULL OR j.group_key = v_group)
                AND (v_key IS NULL OR j.unique_key = v_key)
                AND (v_batch IS NULL OR j.batch_id = v_batch)
                AND j.created_at >= v_since AND j.created_at < v_until
                AND j.created_at <= p_before AS is_match
        FROM livewell.job j
        WHERE j.id > p_after AND j.id <= p_up_to
        ORDER BY j.id LIMIT p_look
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
COMMENT ON FUNCTION livewell.match_jobs IS
    'The ids of live jobs that match a filter, of a bounded number of rows after an id.';
REVOKE ALL ON FUNCTION livewell.match_jobs FROM PUBLIC;
