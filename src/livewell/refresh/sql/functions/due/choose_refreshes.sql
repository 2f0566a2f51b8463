-- Which of the keys that are due go now, in which order, lane and call; what cannot be served is
-- set aside.
--
-- Called by: dispatch_due, with the page of due_candidates and the room of dispatch_room.
-- Index:     queue_pkey, data_type_pkey; ledger_pkey for what is set aside.
-- Answer:    types, keys, lanes and calls in order; left_over: how many wanted to go and could not;
--            reason: budget, if that kept one back.
-- The planner settings of dispatch_due hold here too: to set them again takes 45 µs.
--
-- Order (X2): score = viewers · (seconds waited + 10), lane 0 before lane 1; the highest goes, of
-- everything that is due. Under overload a key with v viewers is refreshed about v times as often
-- as one with one viewer, and nothing waits for ever. due_candidates gives a page of twice what can
-- go; up to that many are due the order is exact, beyond it whatever goes has more than half the
-- score of whatever stays. The bound: with C calls a second, D keys due and V their viewers in all
-- (at most 1,000 counted for a key), a key with v viewers waits no longer than
--     2 · (D + 4 · V / v) / C seconds      (2 · V / v, where the page holds all that is due).
-- Proof: let it wait W. In the second half its score is at least v · W/2, so a key j that goes
-- before it has a score above v · W/4: it has waited at least v·W/(4·v_j) - 10 s since it was last
-- refreshed.
-- If v_j is at most v·W/80 that is at least v·W/(8·v_j), so j goes at most 1 + 4·v_j/v times in
-- that half; if v_j is more, j goes at most once in its time to live, W/(2·ttl) < 4·v_j/v times for
-- a time to live of ten seconds or more. All together at most D + 4·V/v calls in W/2 seconds, and
-- C·W/2 were made. (v as its class says. A class that is too high costs a place in one page, in
-- which it is corrected; one that is too low is corrected by recount_viewers, within keys / 250
-- seconds.)
-- Why 10 seconds: what many watch is served soon after it goes stale, without asking those who wait
-- much longer for it. tests/model/test_refresh_fairness.py, 10,000 keys, 167 calls a second wanted
-- and
-- 10 had: with 0.1 s 33 % of viewers see fresh and the longest wait is 1,590 s; with 10 s 42 % and
-- 1,730 s; "most viewers first" 62 %, and 9,400 keys are never refreshed.
--
-- Half open, what is queued is the probe (R13): a key that is not failing and had data, so that
-- nobody's bad key keeps the others waiting; keys that are failing only if there is no other, from
-- failing_until on (may_probe).
CREATE OR REPLACE FUNCTION livewell.choose_refreshes(
    p_upstream text, p_types text[], p_keys text[], p_dues timestamptz[], p_viewers integer[],
    p_wanted timestamptz[], p_calls integer, p_background_calls integer, p_units bigint,
    p_background_units bigint, p_stalled text[], p_now timestamptz)
RETURNS TABLE (
    types text[], keys text[], lanes integer[], calls integer[], left_over integer, reason text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_probes    boolean[] := livewell.may_probe(p_upstream, p_types, p_keys, p_viewers, p_now);
    v_by_call   boolean := coalesce((       -- the budget counts calls
        SELECT l.budget_unit = 'calls' FROM livewell.limiter l WHERE l.name = p_upstream), false);
    v_c         record;
    v_used      integer := 0;           -- calls so far
    v_units     bigint := 0;            -- of the budget, so far
    v_unit      bigint;
    v_open      text[] := '{}';         -- batch types with a call that is not full,
    v_call      integer[] := '{}';      -- its number,
    v_free      integer[] := '{}';      -- and its free places
    v_place     integer;
    v_set_types text[] := '{}';         -- cannot be served now
    v_set_keys  text[] := '{}';
    v_set_for   integer[] := '{}';      -- and for how many seconds
BEGIN
    types := '{}';
    keys := '{}';
    lanes := '{}';
    calls := '{}';
    left_over := 0;
    FOR v_c IN
        WITH types AS MATERIALIZED (
            SELECT t.*, livewell.expected_size(t.upstream, t.name, t.size_estimate) AS size,
                   livewell.refresh_queue(t.upstream, t.pool) AS queue
            FROM livewell.data_type t WHERE t.name = ANY (p_types)
        )
        SELECT g.name, g.key, t.keys_max, t.size,
               CASE WHEN t.strategy = 'scheduled' OR g.viewers = 0 THEN 1 ELSE 0 END AS lane,
               t.name IS NOT NULL AND t.paused_at IS NULL AND t.parked_reason IS NULL
                   AND q.name IS NOT NULL AS can,
               q.name = ANY (p_stalled) AS stalled
        FROM unnest(p_types, p_keys, p_dues, p_viewers, p_wanted)
             WITH ORDINALITY AS g (name, key, due_at, viewers, wanted_at, place)
        LEFT JOIN types t ON t.name = g.name
        LEFT JOIN livewell.queue q ON q.name = t.queue
        WHERE (g.viewers > 0 OR t.prefetch AND g.wanted_at > p_now - interval '1 day')
          AND coalesce(v_probes[g.place], true)
        ORDER BY 5, g.viewers * (extract(epoch FROM p_now - g.due_at) + 10) DESC, g.due_at
    LOOP
        IF NOT v_c.can OR v_c.stalled THEN
            v_set_types := v_set_types || v_c.name;
            v_set_keys := v_set_keys || v_c.key;
            v_set_for := v_set_for || (CASE WHEN v_c.can THEN 15 ELSE 300 END);
            CONTINUE;
        END IF;
        v_place := CASE WHEN v_c.keys_max > 1 THEN array_position(v_open, v_c.name || v_c.lane) END;
        v_unit := CASE WHEN NOT v_by_call THEN v_c.size WHEN v_free[v_place] > 0 THEN 0 ELSE 1 END;
        IF v_units + v_unit > (CASE v_c.lane WHEN 0 THEN p_units ELSE p_background_units END) THEN
            left_over := left_over + 1;
            reason := 'budget';
            CONTINUE;
        END IF;
        IF v_place IS NULL OR v_free[v_place] = 0 THEN
            IF v_used >= (CASE v_c.lane WHEN 0 THEN p_calls ELSE p_background_calls END) THEN
                left_over := left_over + 1;
                -- There is no call left, nor a place in one.
                EXIT WHEN v_c.lane = 1 OR NOT (0 < ANY (v_free));
                CONTINUE;
            END IF;
            v_used := v_used + 1;
            IF v_c.keys_max > 1 THEN
                v_place := coalesce(v_place, cardinality(v_open) + 1);
                v_open[v_place] := v_c.name || v_c.lane;
                v_call[v_place] := v_used;
                v_free[v_place] := v_c.keys_max;
            END IF;
        END IF;
        IF v_place IS NOT NULL THEN
            v_free[v_place] := v_free[v_place] - 1;
        END IF;
        v_units := v_units + v_unit;
        types := types || v_c.name;
        keys := keys || v_c.key;
        lanes := lanes || v_c.lane;
        calls := calls || coalesce(v_call[v_place], v_used);
    END LOOP;

    IF cardinality(v_set_keys) > 0 THEN
        UPDATE livewell.ledger l SET due_at = p_now + g.seconds * interval '1 second'
        FROM unnest(v_set_types, v_set_keys, v_set_for) AS g (name, key, seconds)
        WHERE l.data_type = g.name AND l.key = g.key AND l.ctid = ANY (ARRAY(
            SELECT s.ctid FROM unnest(v_set_types, v_set_keys) AS k (name, key)
            JOIN livewell.ledger s ON s.data_type = k.name AND s.key = k.key
            FOR NO KEY UPDATE OF s SKIP LOCKED));
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.choose_refreshes IS
    'Which due keys go now, by viewers and waiting, and in which lane and call; sets aside what '
    'cannot.';
REVOKE ALL ON FUNCTION livewell.choose_refreshes FROM PUBLIC;
