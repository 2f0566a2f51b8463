-- A page of dead letters that match a filter, the newest first; a bounded look.
--
-- Called by: the page of dead letters. p_filter: queue, task, reason, group, key, batch, since, until.
-- Index:     dead_job_died_idx, backwards. At most p_look rows are read: a filter that matches few
--            answers a short page and where to go on.
-- p_before_at, p_before_id: the last row of the page before.
-- Answer:    letters, the newest first; next_at and next_id: where to go on, null at the end.
CREATE OR REPLACE FUNCTION livewell.look_dead(
    p_filter jsonb, p_before_at timestamptz, p_before_id bigint, p_look integer, p_limit integer
)
RETURNS jsonb
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
    v_row       record;
    v_letters   jsonb[] := '{}';
    v_looked    integer := 0;
    v_next_at   timestamptz;
    v_next_id   bigint;
    v_more      boolean := false;
BEGIN
    FOR v_row IN
        SELECT d.id, d.queue, d.kind, d.reason, d.attempt, d.lost, d.died_at, d.unique_key,
            d.group_key, d.batch_id, left(d.error, 400) AS error
        FROM livewell.dead_job d
        WHERE d.died_at >= v_since AND d.died_at < v_until
            AND d.died_at <= coalesce(p_before_at, 'infinity')
            AND (d.died_at, d.id) < (coalesce(p_before_at, 'infinity'), coalesce(p_before_id, 0))
        ORDER BY d.died_at DESC, d.id DESC
    LOOP
        IF cardinality(v_letters) = p_limit OR v_looked = p_look THEN
            v_more := true;
            EXIT;
        END IF;
        v_looked := v_looked + 1;
        v_next_at := v_row.died_at;
        v_next_id := v_row.id;
        IF (v_queue IS NULL OR v_row.queue = v_queue)
            AND (v_kind IS NULL OR v_row.kind = v_kind)
            AND (v_reason IS NULL OR v_row.reason = v_reason)
            AND (v_group IS NULL OR v_row.group_key = v_group)
            AND (v_key IS NULL OR v_row.unique_key = v_key)
            AND (v_batch IS NULL OR v_row.batch_id = v_batch)
        THEN
            v_letters := v_letters || jsonb_build_object(
                'id', v_row.id, 'queue', v_row.queue, 'task', v_row.kind, 'reason', v_row.reason,
                'attempt', v_row.attempt, 'lost', v_row.lost, 'died_at', v_row.died_at,
                'error', v_row.error
            );
        END IF;
    END LOOP;
    RETURN jsonb_build_object(
        'letters', to_jsonb(v_letters), 'looked', v_looked,
        'next_at', CASE WHEN v_more THEN v_next_at END,
        'next_id', CASE WHEN v_more THEN v_next_id END
    );
END
$$;
COMMENT ON FUNCTION livewell.look_dead IS
    'A page of dead letters that match a filter, the newest first.';
REVOKE ALL ON FUNCTION livewell.look_dead FROM PUBLIC;
