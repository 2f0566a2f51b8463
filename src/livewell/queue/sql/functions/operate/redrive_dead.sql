-- Give dead letters another life: same id, attempts and losses at zero, ready now.
--
-- Called by: act_on_page; CLI `dead redrive`, clients. By ids, or by queue and kind (NULL: any), oldest first,
--            at most p_limit.
-- A letter whose unique key is taken by a live job stays where it is and is counted as kept.
CREATE OR REPLACE FUNCTION livewell.redrive_dead(
    p_ids bigint[], p_queue text, p_kind text, p_limit integer
)
RETURNS TABLE (redriven bigint, kept bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_picked    bigint[];
    v_born      bigint[];
    v_batches   bigint[];
BEGIN
    v_picked := ARRAY(
        SELECT d.id FROM livewell.dead_job d
        WHERE (p_ids IS NULL OR d.id = ANY (p_ids))
            AND (p_queue IS NULL OR d.queue = p_queue)
            AND (p_kind IS NULL OR d.kind = p_kind)
        ORDER BY d.queue, d.unique_key, d.id LIMIT p_limit FOR UPDATE SKIP LOCKED
    );
    WITH born AS (
        INSERT INTO livewell.job (
            id, rank, batch_id, run_at, created_at, state, max_attempts, priority, lane, queue,
            kind, unique_key, group_key, call_key, payload, last_error, last_traceback, trace, units
        )
        SELECT d.id, (extract(epoch FROM v_now) * 1000)::bigint - d.priority * 60000, d.batch_id,
            v_now, d.created_at, 'ready', d.max_attempts, d.priority, d.lane, d.queue, d.kind,
            d.unique_key, d.group_key, d.call_key, d.payload, d.error, d.traceback, d.trace, d.units
        FROM livewell.dead_job d
        WHERE d.id = ANY (v_picked)
        ORDER BY d.queue, d.unique_key, d.id
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT coalesce(array_agg(b.id), '{}') INTO v_born FROM born b;
    -- A batch that has not ended waits for it again; one that has ended is past.
    v_batches := ARRAY(
        SELECT DISTINCT d.batch_id FROM livewell.dead_job d
        WHERE d.id = ANY (v_born) AND d.batch_id IS NOT NULL
        ORDER BY d.batch_id
    );
    IF cardinality(v_batches) > 0 THEN
        PERFORM FROM livewell.batch b WHERE b.id = ANY (v_batches) ORDER BY b.id FOR NO KEY UPDATE;
        UPDATE livewell.job j
        SET batch_id = NULL
        FROM livewell.batch b
        WHERE j.id = ANY (v_born) AND b.id = j.batch_id AND b.ended_at IS NOT NULL;
        UPDATE livewell.batch b
        SET failed = b.failed - n.n, remaining = b.remaining + n.n
        FROM (
            SELECT d.batch_id, count(*) AS n FROM livewell.dead_job d
            WHERE d.id = ANY (v_born) AND d.batch_id IS NOT NULL
            GROUP BY d.batch_id
        ) n
        WHERE b.id = n.batch_id AND b.ended_at IS NULL;
    END IF;
    DELETE FROM livewell.dead_job d WHERE d.id = ANY (v_born);
    RETURN QUERY
    SELECT cardinality(v_born)::bigint, (cardinality(v_picked) - cardinality(v_born))::bigint;
END
$$;
COMMENT ON FUNCTION livewell.redrive_dead IS
    'Moves dead letters back into the queue; answers how many went and how many stayed because '
    'their key is taken.';
REVOKE ALL ON FUNCTION livewell.redrive_dead FROM PUBLIC;
