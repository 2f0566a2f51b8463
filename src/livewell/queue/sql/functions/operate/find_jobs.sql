-- The ids of jobs that match a filter, from a bounded look: a filter that matches rarely must not
-- read a million rows.
--
-- Called by: count_jobs; GET /v1/jobs, CLI `jobs list`, the dashboard, acts on all that match.
-- p_filter:  {queue, task, state, group, key, batch, since | since_seconds, until | until_seconds};
--            each may be missing. since and until are of created_at, with the state failed of
--            died_at, as acts on dead letters take them; …_seconds is so long ago.
--            Without a state, or with one of a live job: live jobs. failed: dead letters.
--            succeeded, cancelled: the history, which has neither group, key nor batch.
-- Answer:    ids in the order that was asked for, how many rows were looked at, and the id after
--            which to go on; next is NULL at the end. Fewer ids than p_limit are no sign of it.
-- Index:     what narrow_jobs names; otherwise the primary key, dead_job_queue_idx,
--            job_history_id_idx.
-- Why EXECUTE: the table and the direction vary, and each call is planned with its own values, so a
-- part of the filter that is not set costs nothing. Only constants of ours become text.
CREATE OR REPLACE FUNCTION livewell.find_jobs(
    p_filter jsonb, p_after bigint, p_newest boolean, p_limit integer, p_look integer,
    OUT ids bigint[], OUT looked integer, OUT next bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_look      integer := least(greatest(p_look, 1), 100000);
    v_limit     integer := least(greatest(p_limit, 1), 10000);
    v_state     text := p_filter ->> 'state';
    v_since     timestamptz := coalesce(
        (p_filter ->> 'since')::timestamptz,
        v_now - (p_filter ->> 'since_seconds')::float8 * interval '1 second'
    );
    v_until     timestamptz := coalesce(
        (p_filter ->> 'until')::timestamptz,
        v_now - (p_filter ->> 'until_seconds')::float8 * interval '1 second'
    );
    v_among     bigint[] := livewell.narrow_jobs(p_filter, v_look);
    v_table     text;
    v_instant   text := 'created_at';
    v_where     text := 'true';     -- what an index serves
    v_matches   text := 'true';     -- what is looked at row by row
    v_row       record;
    v_more      boolean := false;
BEGIN
    ids := '{}';
    looked := 0;
    IF v_state = 'failed' THEN
        v_table := 'livewell.dead_job';
        v_instant := 'died_at';
        v_where := '($1 IS NULL OR s.queue = $1)';
    ELSIF v_state IN ('succeeded', 'cancelled') THEN
        v_table := 'livewell.job_history';
        v_where := '($6 IS NULL OR s.finished_at >= $6)';       -- whole days are left out
        v_matches := 's.outcome = $3::livewell.job_outcome';
    ELSE
        v_table := 'livewell.job';
        v_matches := '($3 IS NULL OR s.state = $3::livewell.job_state)';
    END IF;
    IF v_table <> 'livewell.job_history' THEN
        v_matches := v_matches || ' AND ($4 IS NULL OR s.group_key = $4)'
            ' AND ($5 IS NULL OR s.unique_key = $5) AND ($8 IS NULL OR s.batch_id = $8)';
    END IF;

    FOR v_row IN EXECUTE format(
        'SELECT s.id, ($1 IS NULL OR s.queue = $1) AND ($2 IS NULL OR s.kind = $2)'
        ' AND ($6 IS NULL OR s.%I >= $6) AND ($7 IS NULL OR s.%I < $7)'
        ' AND %s AS matches FROM %s AS s'
        ' WHERE ($9 IS NULL OR s.id %s $9) AND ($10 IS NULL OR s.id = ANY ($10)) AND %s'
        ' ORDER BY s.id %s LIMIT $11',
        v_instant, v_instant, v_matches, v_table, CASE WHEN p_newest THEN '<' ELSE '>' END, v_where,
        CASE WHEN p_newest THEN 'DESC' ELSE 'ASC' END
    )
    USING p_filter ->> 'queue', p_filter ->> 'task', v_state, p_filter ->> 'group',
        p_filter ->> 'key', v_since, v_until, (p_filter ->> 'batch')::bigint, nullif(p_after, 0),
        v_among, v_look + 1
    LOOP
        -- The row that is one too many only shows that there is more.
        IF looked = v_look OR cardinality(ids) = v_limit THEN
            v_more := true;
            EXIT;
        END IF;
        looked := looked + 1;
        next := v_row.id;
        IF v_row.matches THEN
            ids := ids || v_row.id;
        END IF;
    END LOOP;
    IF NOT v_more THEN
        next := NULL;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.find_jobs IS
    'Ids of jobs that match a filter, from a bounded number of rows, and where to go on.';
REVOKE ALL ON FUNCTION livewell.find_jobs FROM PUBLIC;
