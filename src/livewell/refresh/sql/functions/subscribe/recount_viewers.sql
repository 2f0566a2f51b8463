-- Count the viewers of the next page of an upstream's keys, due or not, and put them into their
-- class; answers where the page ended, NULL after the last one.
--
-- Called by: refresh/due/check.py, every second, by the holder of the singleton, which goes on
--            where the last page ended and begins again after the last. So a class is wrong for no
--            longer than it takes to go round: keys / p_limit seconds, 20 s for 5,000 watched keys.
--            Without it a key that waits far behind and gains a thousand viewers would go on
--            waiting as one with few (a subscription does not write the row of a key that is
--            watched already, contract 7).
-- Index:     ledger_pkey, subscription_key_idx, viewer_session_pkey.
-- Bounds:    c_rows rows of the ledger, p_limit keys that somebody is to see, and about c_looked
--            subscriptions of these.
CREATE OR REPLACE FUNCTION livewell.recount_viewers(
    p_upstream text, p_after_type text, p_after_key text, p_limit integer DEFAULT 250)
RETURNS TABLE (data_type text, key text)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_rows      CONSTANT integer := 2000;
    c_looked    CONSTANT integer := 20000;
    v_now       timestamptz := livewell.now();
    v_type      text := (
        SELECT min(t.name) FROM livewell.data_type t
        WHERE t.upstream = p_upstream AND t.name >= coalesce(p_after_type, ''));
    v_after     text := CASE WHEN v_type = p_after_type THEN p_after_key END;
    v_page      record;
    v_types     text[];
BEGIN
    WITH rows AS MATERIALIZED (
        SELECT l.key, l.due_at, l.demand_class FROM livewell.ledger l
        WHERE l.data_type = v_type AND l.key > coalesce(v_after, '') ORDER BY l.key LIMIT c_rows
    ), awake AS MATERIALIZED (
        SELECT a.key, a.demand_class FROM (
            SELECT r.key, r.demand_class, row_number() OVER w AS place,
                   sum(2 ^ abs(r.demand_class)) OVER w AS looked
            FROM rows r
            WHERE r.due_at IS NOT NULL
            WINDOW w AS (ORDER BY r.key)) a
        WHERE a.place = 1 OR a.place <= p_limit AND a.looked <= c_looked
    )
    SELECT ARRAY(SELECT a.key FROM awake a ORDER BY a.key) AS keys,
           ARRAY(SELECT a.demand_class::integer FROM awake a ORDER BY a.key) AS classes,
           CASE
               WHEN (SELECT count(*) FROM awake) < (
                   SELECT count(*) FROM rows r WHERE r.due_at IS NOT NULL)
                   THEN (SELECT max(a.key) FROM awake a)
                WHEN (SELECT count(*) FROM rows) = c_rows
                    THEN (SELECT max(r.key) FROM rows r) END AS last
    INTO v_page;
    IF cardinality(v_page.keys) > 0 THEN
        v_types := array_fill(v_type, ARRAY[cardinality(v_page.keys)]);
        PERFORM livewell.classify_keys(
            v_types, v_page.keys, v_page.classes,
            livewell.viewers_of(v_types, v_page.keys, v_page.classes, 1000, v_now));
    END IF;
    data_type := v_type;
    key := v_page.last;
    IF key IS NULL THEN     -- the type is done: on with the next
        data_type := (
            SELECT min(t.name) FROM livewell.data_type t
            WHERE t.upstream = p_upstream AND t.name > v_type);
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.recount_viewers IS
    'Counts the viewers of a page of keys and corrects their class; answers where the next page '
    'begins, NULL at the end.';
REVOKE ALL ON FUNCTION livewell.recount_viewers FROM PUBLIC;
