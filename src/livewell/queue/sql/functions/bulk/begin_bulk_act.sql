-- Ask for an act on all that match; workers do it.
--
-- Called by: clients, after count_matching. p_request_key is the caller's: repeated, it answers the
--            act that it began. p_before: when the caller counted; nothing younger is touched.
-- Answer:    the act, and whether it is new. The same action with the same filter is one act while
--            it is unfinished, whoever asks.
-- Index:     bulk_act_request_idx, bulk_act_running_idx; the highest id from the primary keys.
CREATE OR REPLACE FUNCTION livewell.begin_bulk_act(
    p_action text, p_filter jsonb, p_request_key text, p_before timestamptz, p_expected bigint,
    p_actor text
)
RETURNS TABLE (act_id bigint, is_new boolean)
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_filter    jsonb := livewell.check_filter(p_action, p_filter);
    v_up_to     bigint;
    v_id        bigint;
BEGIN
    IF octet_length(v_filter::text) > 2000 THEN
        RAISE EXCEPTION 'the filter has % bytes; 2000 are allowed', octet_length(v_filter::text)
            USING ERRCODE = 'LW003';
    END IF;
    IF p_action IN ('cancel', 'hasten') THEN
        SELECT max(j.id) INTO v_up_to FROM livewell.job j;
    ELSE
        SELECT max(d.id) INTO v_up_to FROM livewell.dead_job d;
    END IF;
    -- A twin that is not committed yet is waited for here. One that ends at this very moment is
    -- found by neither; then this one is inserted in the next round.
    FOR v_round IN 1 .. 3 LOOP
        INSERT INTO livewell.bulk_act (
            asked_at, before_at, stepped_at, up_to_id, expected, action, request_key, asked_by,
            filter
        )
        VALUES (
            v_now, least(coalesce(p_before, v_now), v_now), v_now, coalesce(v_up_to, 0),
            greatest(p_expected, 0), p_action, p_request_key, left(p_actor, 200), v_filter
        )
        ON CONFLICT DO NOTHING
        RETURNING id INTO v_id;
        IF FOUND THEN
            PERFORM livewell.record_act(
                p_actor, 'acts.begin', 'act ' || v_id,
                jsonb_build_object('action', p_action, 'filter', v_filter, 'expected', p_expected),
                'running'
            );
            RETURN QUERY SELECT v_id, true;
            RETURN;
        END IF;
        SELECT b.id INTO v_id FROM livewell.bulk_act b
        WHERE b.request_key = p_request_key
            OR b.state = 'running' AND b.action = p_action AND b.filter = v_filter
        ORDER BY b.request_key = p_request_key DESC NULLS LAST LIMIT 1;
        IF FOUND THEN
            RETURN QUERY SELECT v_id, false;
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'the same act began and ended three times meanwhile; ask again'
        USING ERRCODE = '40001';
END
$$;
COMMENT ON FUNCTION livewell.begin_bulk_act IS
    'Begins an act on all that match a filter, or answers the one that does the same already.';
REVOKE ALL ON FUNCTION livewell.begin_bulk_act FROM PUBLIC;
