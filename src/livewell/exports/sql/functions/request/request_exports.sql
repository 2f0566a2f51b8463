-- Ask for exports: one, or a batch of at most ten that are made all or not at all.
--
-- Called by: Exports.request and request_batch; POST /v1/exports, POST /v1/exports/batch.
-- p_items:   [{id, kind, document, version, options, hash (hex), file_name}], ids chosen by the
--            caller: the same call again is answered as the first time.
-- p_limits:  {bytes_max, day_max}
-- p_follow:  a job for enqueue_jobs without its id, enqueued when every export of the batch has
--            ended.
-- Answer:    {answer: made, items: [{id, answer: made | same | known, state}]}, or {answer: full |
--            daily | kind | template …} with the numbers, and nothing was made.
-- Locks:     the user's row first. Index: export_pkey, export_same_idx.
-- Why SECURITY DEFINER: livewell_api has no table rights; it acts only on rows of the user it is
-- given.
CREATE OR REPLACE FUNCTION livewell.request_exports(
    p_user text, p_items jsonb, p_limits jsonb, p_batch uuid DEFAULT NULL,
    p_follow jsonb DEFAULT NULL, p_trace text DEFAULT NULL
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    c_items_max CONSTANT integer := 10;
    v_now       pg_catalog.timestamptz;
    v_day       pg_catalog.date;
    v_usage     livewell.export_usage;
    v_wrong     pg_catalog.jsonb;
    v_found     pg_catalog.jsonb;
    v_new       integer;
    v_needs     bigint;
    v_asked     integer;
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    IF jsonb_array_length(p_items) NOT BETWEEN 1 AND c_items_max THEN
        RAISE EXCEPTION '% documents: 1 to % are allowed in one batch',
            jsonb_array_length(p_items), c_items_max USING ERRCODE = 'LW003';
    END IF;
    v_usage := livewell.lock_export_usage(p_user);
    v_now := livewell.now();        -- after the lock
    v_wrong := livewell.check_export_items(p_items);
    IF v_wrong IS NOT NULL THEN
        RETURN v_wrong;
    END IF;
    PERFORM livewell.settle_lost_exports(p_user);
    PERFORM livewell.free_expired_exports(p_user, v_now);
    SELECT u.* INTO v_usage FROM livewell.export_usage u WHERE u.user_id = p_user;
    v_found := livewell.match_exports(p_user, p_items);
    SELECT count(*), coalesce(sum(k.bytes_estimate), 0) INTO v_new, v_needs
    FROM jsonb_to_recordset(v_found) AS m (answer pg_catalog.text, kind pg_catalog.text)
    JOIN livewell.export_kind k ON k.name = m.kind
    WHERE m.answer = 'made';

    v_day := (v_now AT TIME ZONE 'UTC')::pg_catalog.date;
    v_asked := CASE WHEN v_usage.day = v_day THEN v_usage.day_count ELSE 0 END;
    IF v_new > 0 AND v_asked + v_new > (p_limits ->> 'day_max')::integer THEN
        RETURN jsonb_build_object(
            'answer', 'daily', 'used', v_asked, 'asked', v_new, 'allowed', p_limits -> 'day_max',
            'resets_at', (v_day + 1)::pg_catalog.timestamp AT TIME ZONE 'UTC');
    END IF;
    -- Batches of what is unfinished already make no export, and still are rows.
    IF p_batch IS NOT NULL AND (p_limits ->> 'day_max')::integer <= (
        SELECT count(*) FROM livewell.export_batch b
        WHERE b.user_id = p_user AND b.created_at > v_now - interval '1 day' AND b.id <> p_batch)
    THEN
        RETURN jsonb_build_object(
            'answer', 'daily', 'used', p_limits -> 'day_max', 'asked', 1,
            'allowed', p_limits -> 'day_max', 'resets_at', v_now + interval '1 day');
    END IF;
    IF v_new > 0 AND v_usage.stored_bytes + v_usage.reserved_bytes + v_needs
        > (p_limits ->> 'bytes_max')::bigint THEN
        RETURN jsonb_build_object(
            'answer', 'full', 'stored', v_usage.stored_bytes, 'reserved', v_usage.reserved_bytes,
            'needs', v_needs, 'allowed', p_limits -> 'bytes_max');
    END IF;
    IF v_new > 0 THEN
        UPDATE livewell.export_usage u
        SET reserved_bytes = u.reserved_bytes + v_needs, day = v_day, day_count = v_asked + v_new,
            bytes_max = (p_limits ->> 'bytes_max')::bigint,
            day_max = (p_limits ->> 'day_max')::integer
        WHERE u.user_id = p_user;
        PERFORM livewell.insert_exports(p_user, v_found, p_trace, v_now);
    END IF;
    IF p_batch IS NOT NULL THEN
        PERFORM livewell.insert_export_batch(p_user, p_batch, v_found, p_follow, v_now);
    END IF;
    RETURN jsonb_build_object('answer', 'made', 'batch', p_batch, 'items', (
        SELECT jsonb_agg(jsonb_build_object(
            'id', e.id, 'answer', m.answer, 'state', e.state, 'seq', e.seq) ORDER BY m.place)
        FROM jsonb_to_recordset(v_found) AS m (place integer, export pg_catalog.uuid, answer pg_catalog.text)
        JOIN livewell.export e ON e.id = m.export));
END
$$;
COMMENT ON FUNCTION livewell.request_exports IS
    'Makes exports and their jobs, within the quotas of their user; the same unfinished one stands for a second.';
REVOKE ALL ON FUNCTION livewell.request_exports FROM PUBLIC;
