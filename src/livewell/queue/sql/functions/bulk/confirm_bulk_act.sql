-- Ask for an act on all that match, if they are those that the caller has confirmed.
--
-- Called by: clients: the page that asks, POST /v1/acts. p_expected: the number that was confirmed;
--            NULL: all of them, however many. The others as in begin_bulk_act.
-- Answer:    as begin_bulk_act; without an act_id nothing was done: more match by now, or nobody
--            knows how many (how is not exact), and expected and how say what was counted.
-- Why a number is never enough where the count is not exact: 0 of the first 200,000 may be tens of
-- thousands of all.
-- Why the request key comes first: a repeated request is answered by its act, also if more match by
-- now.
-- Index:     bulk_act_request_idx; then as count_matching and begin_bulk_act.
CREATE OR REPLACE FUNCTION livewell.confirm_bulk_act(
    p_action text, p_filter jsonb, p_request_key text, p_before timestamptz, p_expected bigint,
    p_actor text
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
    v_found record;
BEGIN
    SELECT 0::bigint AS n, 'exact' AS how INTO v_found;
    IF NOT EXISTS (SELECT FROM livewell.bulk_act b WHERE b.request_key = p_request_key) THEN
        SELECT c.n, c.how INTO v_found
        FROM livewell.count_matching(p_action, p_filter, p_before) c;
        IF p_expected IS NOT NULL AND (v_found.how <> 'exact' OR v_found.n > p_expected) THEN
            RETURN QUERY
            SELECT NULL::bigint, false, false, NULL::text, NULL::timestamptz, v_found.n,
                v_found.how;
            RETURN;
        END IF;
    END IF;
    RETURN QUERY
    SELECT * FROM livewell.begin_bulk_act(
        p_action, p_filter, p_request_key, p_before, v_found.n, v_found.how, p_actor
    );
END
$$;
COMMENT ON FUNCTION livewell.confirm_bulk_act IS
    'Begins an act on all that match, if no more do than were confirmed.';
REVOKE ALL ON FUNCTION livewell.confirm_bulk_act FROM PUBLIC;
