-- How many an act would touch: counted exactly to 10,000, in a bounded look.
--
-- Called by: confirm_bulk_act; clients, before it.
-- how:       exact; more: there are more than 10,000; looked: so many among the first 200,000 rows
--            by id, and nobody looked behind them.
-- Index:     as match_jobs and match_dead.
CREATE OR REPLACE FUNCTION livewell.count_matching(
    p_action text, p_filter jsonb, p_before timestamptz
)
RETURNS TABLE (n bigint, how text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    c_most      CONSTANT integer := 10000;
    c_look_most CONSTANT integer := 200000;
    v_filter    jsonb := livewell.check_filter(p_action, p_filter);
    v_before    timestamptz := coalesce(p_before, livewell.now());
    v_after     bigint := 0;
    v_n         bigint := 0;
    v_looked    integer := 0;
    v_page      livewell.match_page;
BEGIN
    LOOP
        IF p_action IN ('cancel', 'hasten') THEN
            v_page := livewell.match_jobs(
                v_filter, v_after, 9223372036854775807, v_before, 10000, c_most + 1 - v_n::integer
            );
        ELSE
            v_page := livewell.match_dead(
                v_filter, v_after, 9223372036854775807, v_before, 10000, c_most + 1 - v_n::integer
            );
        END IF;
        v_n := v_n + cardinality(v_page.ids);
        v_looked := v_looked + v_page.looked;
        v_after := v_page.cursor_id;
        EXIT WHEN v_page.is_last OR v_n > c_most OR v_looked >= c_look_most;
    END LOOP;
    RETURN QUERY
    SELECT least(v_n, c_most),
        CASE WHEN v_n > c_most THEN 'more' WHEN v_page.is_last THEN 'exact' ELSE 'looked' END;
END
$$;
COMMENT ON FUNCTION livewell.count_matching IS
    'How many jobs or dead letters an act with this filter would touch: exact to 10,000.';
REVOKE ALL ON FUNCTION livewell.count_matching FROM PUBLIC;
