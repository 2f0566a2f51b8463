-- A client looks at these keys: remember it, make sure that they are kept fresh from now on, and
-- say how fresh each is. Many pairs in one round trip (R3, R6).
--
-- Called by: servers and other clients.
-- p_user:    a user; public:<key>@<network> for somebody anonymous with a public key, whose session
--            must be of that key; NULL for somebody anonymous who is known by the id alone.
-- p_max:     subscriptions that one user may have; pairs beyond it are refused, in the order given.
-- p_cold_max: keys that nobody ever asked for which this user may bring up in a minute, reads
--             included; NULL: somebody trusted. Strangers cannot spend the quota on keys they make
--             up.
-- Answer:    one row per distinct pair, in the order given. answer: subscribed; unknown_type;
--            bad_key; capped; cold_budget; or, alone, unknown_session (no such session, or somebody
--            else's: the same). wanted: it is stale and not backed off, so a nudge of refresh.due
--            is worth sending.
-- Steps:     touch_session, the viewer's lock, answer_pairs (what is new), spend_cold_keys, the
--            subscriptions, unpark, judge_keys.
-- Isolation (contract 4): a type whose rule cannot be computed counts as stale, leaves a warning,
-- and changes nothing for the others; nor does a type that does not exist.
-- Locks, in this order as everywhere: session, viewer, ledger rows in key order (KEY SHARE, see
-- unpark). Counting under the viewer's lock keeps the cap under races.
-- Nothing is written per view beyond the subscription itself (contract 7): a key that is already
-- due for somebody else is only share-locked.
-- One key with 100,000 viewers: 0.6 ms a subscription on a busy machine; 16 clients at once beside
-- a due check that dispatches the key: no wait for a lock was seen (looked every 2 ms).
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.subscribe(
    p_session uuid, p_user text, p_types text[], p_keys text[], p_max integer DEFAULT 1000,
    p_cold_max integer DEFAULT NULL)
RETURNS TABLE (
    data_type text, key text, answer text, verdict text, wanted boolean, version bigint,
    status_version bigint, source_at timestamptz, fetched_at timestamptz, checked_at timestamptz,
    age_seconds float8)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_begun     pg_catalog.timestamptz := livewell.now();     -- for seen_at, which only grows
    v_now       pg_catalog.timestamptz;
    v_id        pg_catalog.uuid := livewell.session_hash(p_session);
    v_key       pg_catalog.text := livewell.public_key_of(p_user);
    v_user      pg_catalog.text := coalesce(
        CASE WHEN v_key IS NULL THEN p_user END, 'session:' || v_id);
    v_types     pg_catalog.text[];      -- distinct pairs, in the order given
    v_keys      pg_catalog.text[];
    v_answers   pg_catalog.text[];
    v_has       integer;
    v_awake     integer;
    v_new       integer;
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);
    IF coalesce(cardinality(p_keys), 0) > 1000
       OR cardinality(p_types) IS DISTINCT FROM cardinality(p_keys) THEN
        RAISE EXCEPTION '% types and % keys: at most 1000 pairs in one call', cardinality(p_types),
            cardinality(p_keys)
        USING ERRCODE = 'LW003';
    END IF;
    IF NOT livewell.touch_session(p_session, p_user, v_id, v_user, v_key, v_begun) THEN
        answer := 'unknown_session';
        RETURN NEXT;
        RETURN;
    END IF;
    INSERT INTO livewell.viewer AS w (user_id)
    VALUES (v_user) ON CONFLICT (user_id) DO UPDATE SET subscriptions = w.subscriptions
    RETURNING w.subscriptions INTO v_has;
    v_now := livewell.now();
    SELECT a.types, a.keys, a.answers INTO v_types, v_keys, v_answers
    FROM livewell.answer_pairs(v_id, p_types, p_keys, p_max - v_has) AS a;
    IF p_cold_max IS NOT NULL THEN
        v_answers := livewell.spend_cold_keys(v_user, p_cold_max, v_types, v_keys, v_answers);
    END IF;
    INSERT INTO livewell.subscription (session_id, data_type, key, user_id)
    SELECT v_id, g.type, g.key, v_user
    FROM unnest(v_types, v_keys, v_answers) AS g (type, key, answer)
    WHERE g.answer = 'new'
    ON CONFLICT (session_id, data_type, key) DO NOTHING;
    GET DIAGNOSTICS v_new = ROW_COUNT;
    IF v_new > 0 THEN
        UPDATE livewell.viewer w SET subscriptions = w.subscriptions + v_new
        WHERE w.user_id = v_user;
    END IF;
    v_answers := array_replace(v_answers, 'new', 'subscribed');
    -- A popular key is there, due and counted as watched: the lock is all it takes, and what is
    -- read with it is the row as it is after any wait. A function less, a tenth of a subscription.
    -- LATERAL: one look by primary key for each, whatever the plan was made for. A join, planned
    -- when the ledger had three rows, read 49,000 rows for each of a thousand keys: 22 s.
    SELECT count(*) FILTER (WHERE l.due_at IS NOT NULL AND l.demand_class <> 0) INTO v_awake
    FROM (
        SELECT g.type, g.key FROM unnest(v_types, v_keys, v_answers) AS g (type, key, answer)
        WHERE g.answer = 'subscribed' ORDER BY 1, 2) g
    CROSS JOIN LATERAL (
        SELECT x.due_at, x.demand_class FROM livewell.ledger x
        WHERE x.data_type = g.type AND x.key = g.key FOR KEY SHARE) l;
    IF v_awake < cardinality(array_positions(v_answers, 'subscribed')) THEN
        PERFORM livewell.unpark(array_agg(g.type), array_agg(g.key), v_now)
        FROM unnest(v_types, v_keys, v_answers) AS g (type, key, answer)
        WHERE g.answer = 'subscribed';
    END IF;

    <<together>>
    BEGIN
        RETURN QUERY SELECT * FROM livewell.judge_keys(v_types, v_keys, v_answers, v_now);
    EXCEPTION WHEN others THEN
        RETURN QUERY SELECT * FROM livewell.judge_by_type(v_types, v_keys, v_answers, v_now);
    END together;
END
$$;
COMMENT ON FUNCTION livewell.subscribe IS
    'Subscribes a session to keys, un-parks them, and answers how fresh each is.';
REVOKE ALL ON FUNCTION livewell.subscribe FROM PUBLIC;
