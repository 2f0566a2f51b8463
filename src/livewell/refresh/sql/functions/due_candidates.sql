-- A bounded page of what is due for an upstream, with its viewers now: the oldest, the newest, and some of those between.
--
-- Called by: dispatch_due, without any lock: what is chosen from it is locked and looked at again.
-- Index:     ledger_due_idx, subscription_key_idx, viewer_session_pkey. Cost grows with what is due, not with what exists (R7, contract 12).
-- Why three parts: the oldest are never passed over; under overload a key that has just become due and is watched by many must be seen before it is old; and from a random instant between, so
-- that over a few looks everything is seen. Up to p_oldest keys are due: all of them are in the page.
-- Viewers as count_viewers counts them: of a thousand subscriptions first, and of two thousand only if those were of few users (a key with 100,000 viewers took half of all the counting). Who waits for a read-through (demanded_at, for a minute) counts as one more.
-- p_room:    calls that may be queued now. Where everything that is due can go at once, its order is worth less, and a thousand subscriptions are looked at in all: 7 ms instead of 17 for 500 keys.
CREATE OR REPLACE FUNCTION livewell.due_candidates(p_upstream text, p_now timestamptz, p_oldest integer, p_newest integer, p_room integer)
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
    v_since     timestamptz := p_now - interval '5 minutes';
    v_types     text[];
    v_keys      text[];
    v_dues      timestamptz[];
    v_demanded  integer[];              -- 1: somebody waits for it by read-through
    v_wanted    timestamptz[];
    v_last      timestamptz;
    v_counted   integer;                -- subscriptions looked at for a key
BEGIN
    SELECT array_agg(o.data_type), array_agg(o.key), array_agg(o.due_at), array_agg(o.demanded), array_agg(o.wanted_at), max(o.due_at) INTO v_types, v_keys, v_dues, v_demanded, v_wanted, v_last
    FROM (SELECT l.data_type, l.key, l.due_at, l.wanted_at, (coalesce(l.demanded_at > p_now - interval '1 minute', false) AND coalesce(l.checked_at < l.demanded_at, true))::integer AS demanded
          FROM livewell.ledger l WHERE l.upstream = p_upstream AND l.due_at <= p_now ORDER BY l.due_at LIMIT p_oldest) o;
    IF cardinality(v_keys) = p_oldest THEN
        SELECT v_types || array_agg(o.data_type), v_keys || array_agg(o.key), v_dues || array_agg(o.due_at), v_demanded || array_agg(o.demanded), v_wanted || array_agg(o.wanted_at)
        INTO v_types, v_keys, v_dues, v_demanded, v_wanted FROM (
            SELECT n.* FROM (
                SELECT l.data_type, l.key, l.due_at, l.wanted_at, (coalesce(l.demanded_at > p_now - interval '1 minute', false) AND coalesce(l.checked_at < l.demanded_at, true))::integer AS demanded
                FROM livewell.ledger l WHERE l.upstream = p_upstream AND l.due_at <= p_now AND l.due_at > v_last ORDER BY l.due_at DESC LIMIT p_newest) n
            UNION
            SELECT m.* FROM (
                SELECT l.data_type, l.key, l.due_at, l.wanted_at, (coalesce(l.demanded_at > p_now - interval '1 minute', false) AND coalesce(l.checked_at < l.demanded_at, true))::integer AS demanded
                FROM livewell.ledger l
                WHERE l.upstream = p_upstream AND l.due_at <= p_now AND l.due_at > v_last + (SELECT random()) * (p_now - v_last) ORDER BY l.due_at LIMIT p_newest) m) o;
    END IF;
    v_counted := CASE WHEN cardinality(v_keys) <= p_room THEN greatest(1000 / cardinality(v_keys), 1) ELSE 1000 END;
    RETURN QUERY
    SELECT p.data_type, p.key, p.due_at,
           (p.demanded + CASE WHEN n.rows < 1000 OR n.users > 500 THEN n.users ELSE (
               SELECT least(count(DISTINCT s.user_id), 1000) FROM (
                   SELECT b.user_id FROM livewell.subscription b JOIN livewell.viewer_session v ON v.id = b.session_id
                   WHERE b.data_type = p.data_type AND b.key = p.key AND v.seen_at > v_since LIMIT 2000) s) END)::integer, p.wanted_at
    FROM unnest(v_types, v_keys, v_dues, v_demanded, v_wanted) AS p (data_type, key, due_at, demanded, wanted_at)
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT s.user_id) AS users, count(*) AS rows FROM (
            SELECT b.user_id FROM livewell.subscription b JOIN livewell.viewer_session v ON v.id = b.session_id
            WHERE b.data_type = p.data_type AND b.key = p.key AND v.seen_at > v_since LIMIT v_counted) s) n;
END
$$;
COMMENT ON FUNCTION livewell.due_candidates IS 'A bounded page of what is due, with the viewers of each.';
REVOKE ALL ON FUNCTION livewell.due_candidates FROM PUBLIC;
