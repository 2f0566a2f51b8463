-- Make keys that somebody watches due again, if they are parked, and take those that nobody watched
-- (prefetched ones) out of the class of the background; keys that nobody ever asked for get their
-- row.
--
-- Called by: subscribe, and heartbeat_session for a session that was silent for long. The caller
--            has written that it watches, in this transaction, before.
-- Index:     ledger_pkey.
-- Race with parking (dispatch_due, race-tested): a key is parked by whoever holds its row FOR
-- UPDATE and counted its viewers afterwards. KEY SHARE waits for that one, and then we see the key
-- parked; or it comes first, and then the checker skips the row. Any weaker and a watched key
-- sleeps for ever. KEY SHARE does not wait for other subscribers, nor for a store.
-- Lock first, then read, then write, each in key order: two callers with overlapping keys never
-- deadlock.
-- A rule that cannot be computed counts as stale, so the key is due now (R6).
CREATE OR REPLACE FUNCTION livewell.unpark(p_types text[], p_keys text[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_row   record;
    v_due   timestamp with time zone;
    v_woken integer := 0;
BEGIN
    INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at, wanted_at)
    SELECT g.type, g.key, t.upstream, p_now, p_now, p_now
    FROM (SELECT DISTINCT u.type, u.key FROM unnest(p_types, p_keys) AS u (type, key)) g
    JOIN livewell.data_type t ON t.name = g.type
    LEFT JOIN LATERAL (
        SELECT true AS known FROM livewell.ledger x
        WHERE x.data_type = g.type AND x.key = g.key OFFSET 0) l ON true
    WHERE l.known IS NULL
    ORDER BY g.type, g.key
    ON CONFLICT (data_type, key) DO NOTHING;
    PERFORM
    FROM (
        SELECT DISTINCT u.type, u.key FROM unnest(p_types, p_keys) AS u (type, key) ORDER BY 1, 2) g
    -- See subscribe.
    CROSS JOIN LATERAL (
        SELECT FROM livewell.ledger x WHERE x.data_type = g.type AND x.key = g.key FOR KEY SHARE) l;
    FOR v_row IN
        WITH rules AS MATERIALIZED (
            -- See judge_keys.
            SELECT jsonb_populate_record(d, '{"definition": {}, "columns": []}') AS rule, d.name
            FROM livewell.data_type d
            WHERE d.name = ANY (p_types)
        )
        SELECT g.type AS data_type, g.key, t.rule, l.ledger
        FROM (SELECT DISTINCT u.type, u.key FROM unnest(p_types, p_keys) AS u (type, key)) g
        CROSS JOIN LATERAL (
            SELECT x AS ledger FROM livewell.ledger x
            WHERE x.data_type = g.type AND x.key = g.key
              AND (x.due_at IS NULL OR x.demand_class = 0)
            OFFSET 0) l
        JOIN rules t ON t.name = g.type
        ORDER BY g.type, g.key
    LOOP
        <<attempt>>
        BEGIN
            v_due := livewell.next_due(v_row.rule, v_row.ledger, p_now);
        EXCEPTION WHEN others THEN
            PERFORM livewell.warn(
                'refresh.check', v_row.data_type || ': a check failed and counted as stale',
                SQLERRM);
            v_due := p_now;
        END attempt;
        UPDATE livewell.ledger l
        SET demand_class = CASE l.demand_class WHEN 0 THEN 1 ELSE l.demand_class END,
            due_at = coalesce(l.due_at, v_due)
        WHERE l.data_type = v_row.data_type AND l.key = v_row.key
          AND (l.due_at IS NULL OR l.demand_class = 0);
        v_woken := v_woken + 1;
    END LOOP;
    RETURN v_woken;
END
$$;
COMMENT ON FUNCTION livewell.unpark IS 'Makes parked keys due again; answers how many were parked.';
REVOKE ALL ON FUNCTION livewell.unpark FROM PUBLIC;
