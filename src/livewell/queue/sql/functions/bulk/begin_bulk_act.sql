-- Ask for an act on all that match; workers do it.
--
-- Called by: confirm_bulk_act; clients, after count_matching. p_request_key is the caller's:
--            repeated, it answers the act that it began. p_before: when the caller counted; nothing
--            younger is touched. p_expected, p_how: what count_matching said.
-- Answer:    the act as it was asked for. is_new: this call began it. is_twin: somebody else asked
--            for the same, and it is unfinished: what its before_at leaves out is not done by it.
--            Neither: it is the act that this request key began before.
-- A request key that began something else is refused: to answer that act would say that this one
-- is done.
-- Index:     bulk_act_request_idx, bulk_act_running_idx; the ids from the primary keys.
CREATE OR REPLACE FUNCTION livewell.begin_bulk_act(
    p_action text, p_filter jsonb, p_request_key text, p_before timestamptz, p_expected bigint,
    p_how text, p_actor text
)
RETURNS TABLE (
    act_id bigint, is_new boolean, is_twin boolean, asked_by text, before_at timestamptz,
    expected bigint, how text
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_filter    jsonb := livewell.check_filter(p_action, p_filter);
    v_from      bigint;
    v_up_to     bigint;
    v_act       livewell.bulk_act;
BEGIN
    IF octet_length(v_filter::text) > 2000 THEN
        RAISE EXCEPTION 'the filter has % bytes; 2000 are allowed', octet_length(v_filter::text)
            USING ERRCODE = 'LW003';
    END IF;
    IF p_action IN ('cancel', 'hasten') THEN
        SELECT min(j.id), max(j.id) INTO v_from, v_up_to FROM livewell.job j;
    ELSE
        SELECT min(d.id), max(d.id) INTO v_from, v_up_to FROM livewell.dead_job d;
    END IF;
    -- A twin that is not committed yet is waited for here. One that ends at this very moment is
    -- found by neither; then this one is inserted in the next round.
    FOR v_round IN 1 .. 3 LOOP
        INSERT INTO livewell.bulk_act (
            asked_at, before_at, stepped_at, from_id, up_to_id, expected, how, action, request_key,
            asked_by, filter
        )
        VALUES (
            v_now, least(coalesce(p_before, v_now), v_now), v_now, coalesce(v_from, 0),
            coalesce(v_up_to, 0), greatest(p_expected, 0), p_how, p_action, p_request_key,
            left(p_actor, 200), v_filter
        )
        ON CONFLICT DO NOTHING
        RETURNING * INTO v_act;
        IF FOUND THEN
            PERFORM livewell.audit_act(
                p_actor, NULL, 'acts.begin', 'act ' || v_act.id,
                jsonb_build_object(
                    'action', p_action, 'filter', v_filter, 'expected', p_expected, 'how', p_how
                ),
                'running', NULL, NULL, NULL
            );
            RETURN QUERY
            SELECT v_act.id, true, false, v_act.asked_by, v_act.before_at, v_act.expected,
                v_act.how;
            RETURN;
        END IF;
        SELECT * INTO v_act FROM livewell.bulk_act b
        WHERE b.request_key = p_request_key
            OR b.state = 'running' AND b.action = p_action AND b.filter = v_filter
        ORDER BY b.request_key = p_request_key DESC NULLS LAST LIMIT 1;
        IF NOT FOUND THEN
            CONTINUE;
        END IF;
        IF v_act.request_key = p_request_key
            AND (v_act.action <> p_action OR v_act.filter <> v_filter)
        THEN
            RAISE EXCEPTION 'the request key % began act %, which is another: %, filter %. Nothing '
                'was done; ask with a key of its own', p_request_key, v_act.id, v_act.action,
                v_act.filter
                USING ERRCODE = 'LW003';
        END IF;
        RETURN QUERY
        SELECT v_act.id, false, (v_act.request_key = p_request_key) IS NOT TRUE, v_act.asked_by,
            v_act.before_at, v_act.expected, v_act.how;
        RETURN;
    END LOOP;
    RAISE EXCEPTION 'the same act began and ended three times meanwhile; ask again'
        USING ERRCODE = '40001';
END
$$;
COMMENT ON FUNCTION livewell.begin_bulk_act IS
    'Begins an act on all that match a filter, or answers the one that does the same already.';
REVOKE ALL ON FUNCTION livewell.begin_bulk_act FROM PUBLIC;
