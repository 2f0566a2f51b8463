-- A bounded page of what is due for an upstream, with its viewers now: what has the highest score,
-- of everything that is due (X2).
--
-- Called by: dispatch_due. What is chosen from it is locked and looked at again; only classes that
--            turned out to be wrong are written.
-- Index:     ledger_class_idx, subscription_key_idx, viewer_session_pkey. Cost grows with the page,
--            not with what is due nor with what exists (R7, contract 12).
-- How:       the ledger has the class of each key, the power of two below its viewers when it was
--            last counted. Within a class the oldest have the highest score, so the first of each
--            class, merged by least viewers of the class · (seconds waited + 10), are the first of
--            all. These alone are counted, and their true viewers decide the order. The least of a
--            class is more than half of its true viewers: whatever is in the page has more than
--            half the score of whatever is not.
-- Why rows are compared: with demand_class = class AND due_at <= now both ledger_class_idx and
--            ledger_due_idx serve, and where statistics know one class only (after the migration;
--            while all keys have one viewer) the smaller one is taken: each class then reads all
--            that is due, 940,000 pages and up to 6 s for 50,000 keys. A pair can be had from one
--            index alone, whatever statistics say.
-- p_oldest:  keys that people look at, at most. p_newest: keys of the background (classes 0 and
--            below), at most; they never take a place from the others.
-- p_room:    calls that may be queued now. Where everything that is due can go at once, its order
--            is worth less, and a thousand subscriptions are looked at in all: 7 ms instead of 17
--            for 500 keys. Otherwise c_looked: a page of keys with hundreds of viewers each costs
--            no more than one of keys with few, see viewers_of.
-- Who waits for a read-through (demanded_at, for a minute) counts as one viewer more.
CREATE OR REPLACE FUNCTION livewell.due_candidates(
    p_upstream text, p_now timestamptz, p_oldest integer, p_newest integer, p_room integer)
RETURNS TABLE (data_type text, key text, due_at timestamptz, viewers integer, wanted_at timestamptz)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    c_looked    CONSTANT integer := 60000;
    v_page      record;                 -- as arrays
    v_n         integer;
    v_viewers   integer[];
BEGIN
    SELECT array_agg(o.data_type) AS types, array_agg(o.key) AS keys, array_agg(o.due_at) AS dues,
           array_agg(o.demanded) AS demanded, array_agg(o.wanted_at) AS wanted,
           array_agg(o.class) AS classes
    INTO v_page FROM (
        (SELECT f.* FROM generate_series(1, 10) AS c (class) CROSS JOIN LATERAL (
            SELECT l.data_type, l.key, l.due_at, l.wanted_at, c.class,
                   (
                       coalesce(l.demanded_at > p_now - interval '1 minute', false)
                           AND coalesce(l.checked_at < l.demanded_at, true))::integer AS demanded
            FROM livewell.ledger l
            WHERE l.upstream = p_upstream AND l.due_at IS NOT NULL
              AND (l.demand_class, l.due_at) >= (c.class, '-infinity')
              AND (l.demand_class, l.due_at) <= (c.class, p_now)
            ORDER BY l.demand_class, l.due_at LIMIT p_oldest) f
         ORDER BY 2 ^ (f.class - 1) * (extract(epoch FROM p_now - f.due_at) + 10) DESC
         LIMIT p_oldest)
        UNION ALL
        (SELECT f.* FROM generate_series(-10, 0) AS c (class) CROSS JOIN LATERAL (
            SELECT l.data_type, l.key, l.due_at, l.wanted_at, c.class,
                   (
                       coalesce(l.demanded_at > p_now - interval '1 minute', false)
                           AND coalesce(l.checked_at < l.demanded_at, true))::integer AS demanded
            FROM livewell.ledger l
            WHERE l.upstream = p_upstream AND l.due_at IS NOT NULL
              AND (l.demand_class, l.due_at) >= (c.class, '-infinity')
              AND (l.demand_class, l.due_at) <= (c.class, p_now)
            ORDER BY l.demand_class, l.due_at LIMIT p_newest) f
         ORDER BY 2 ^ (-f.class - 1) * (extract(epoch FROM p_now - f.due_at) + 10) DESC
         LIMIT p_newest)) o;
    v_n := cardinality(v_page.keys);
    IF v_n IS NULL THEN
        RETURN;
    END IF;
    v_viewers := livewell.viewers_of(
        v_page.types, v_page.keys, v_page.classes,
        least(greatest(CASE WHEN v_n <= p_room THEN 1000 ELSE c_looked END / v_n, 1), 1000), p_now);
    v_viewers := ARRAY(
        SELECT n + d FROM unnest(v_viewers, v_page.demanded) WITH ORDINALITY AS u (n, d, place)
        ORDER BY u.place);
    PERFORM livewell.classify_keys(v_page.types, v_page.keys, v_page.classes, v_viewers);
    RETURN QUERY SELECT *
    FROM unnest(v_page.types, v_page.keys, v_page.dues, v_viewers, v_page.wanted);
END
$$;
COMMENT ON FUNCTION livewell.due_candidates IS
    'A bounded page of what is due, by viewers and waiting, with the viewers of each.';
REVOKE ALL ON FUNCTION livewell.due_candidates FROM PUBLIC;
