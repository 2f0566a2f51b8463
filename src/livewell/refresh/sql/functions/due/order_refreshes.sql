-- The keys of a page of what is due that somebody wants, in the order in which they go: each with
-- its lane, what its type says about calls, and whether it can be served at all.
--
-- Called by: choose_refreshes, with its planner settings.
-- Index:     queue_pkey, data_type_pkey.
-- can:       its type is neither paused nor parked, and has a queue.
-- stalled:   nobody works that queue.
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
-- refreshed. If v_j is at most v·W/80 that is at least v·W/(8·v_j), so j goes at most 1 + 4·v_j/v
-- times in that half; if v_j is more, j goes at most once in its time to live, W/(2·ttl) < 4·v_j/v
-- times for a time to live of ten seconds or more. All together at most D + 4·V/v calls in W/2
-- seconds, and C·W/2 were made. (v as its class says. A class that is too high costs a place in one
-- page, in which it is corrected; one that is too low is corrected by recount_viewers, within
-- keys / 250 seconds.)
-- Why 10 seconds: what many watch is served soon after it goes stale, without asking those who wait
-- much longer for it. tests/model/test_refresh_fairness.py, 10,000 keys, 167 calls a second wanted
-- and 10 had: with 0.1 s 33 % of viewers see fresh and the longest wait is 1,590 s; with 10 s 42 %
-- and 1,730 s; "most viewers first" 62 %, and 9,400 keys are never refreshed.
--
-- Half open, what is queued is the probe (R13): a key that is not failing and had data, so that
-- nobody's bad key keeps the others waiting; keys that are failing only if there is no other, from
-- failing_until on (may_probe).
CREATE OR REPLACE FUNCTION livewell.order_refreshes(
    p_upstream text, p_types text[], p_keys text[], p_dues timestamptz[], p_viewers integer[],
    p_wanted timestamptz[], p_stalled text[], p_now timestamptz)
RETURNS TABLE (
    name text, key text, keys_max smallint, size bigint, lane integer, can boolean, stalled boolean)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_probes    boolean[] := livewell.may_probe(p_upstream, p_types, p_keys, p_viewers, p_now);
BEGIN
    RETURN QUERY
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
    ORDER BY 5, g.viewers * (extract(epoch FROM p_now - g.due_at) + 10) DESC, g.due_at;
END
$$;
COMMENT ON FUNCTION livewell.order_refreshes IS
    'The due keys that somebody wants, by viewers and waiting, lane 0 before lane 1.';
REVOKE ALL ON FUNCTION livewell.order_refreshes FROM PUBLIC;
