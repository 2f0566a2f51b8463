-- Which of these locked keys are truly to be fetched now; those that are not get the due_at they
-- should have had.
--
-- Called by: queue_chosen. due_at is an index, never a verdict: a key may have been stored, backed
--            off or given another time to live since.
-- What is due is stale as a rule, so stale_at is asked first: is_stale would ask it too, and rows
-- that are handed on are unpacked each time (12 µs a key).
-- A rule that cannot be computed counts as stale, and leaves a warning (R6, contract 4). Index:
-- ledger_pkey, data_type_pkey.
CREATE OR REPLACE FUNCTION livewell.ready_keys(p_types text[], p_keys text[], p_now timestamptz)
RETURNS boolean[]
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_ready     boolean[];
    v_dues      timestamptz[];
    v_rows      record;
BEGIN
    <<together>>
    BEGIN
        -- Who waits for a read-through may have asked for a younger value than the time to live
        -- gives.
        WITH rules AS MATERIALIZED (
            -- See judge_keys.
            SELECT jsonb_populate_record(d, '{"definition": {}, "columns": []}') AS rule, d.name
            FROM livewell.data_type d
            WHERE d.name = ANY (p_types)
        )
        SELECT array_agg(c.ready ORDER BY c.place),
               array_agg(
                   CASE WHEN NOT c.ready THEN livewell.next_due(c.rule, c.ledger, p_now) END
                   ORDER BY c.place)
        INTO v_ready, v_dues FROM (
            SELECT g.place, t.rule, l AS ledger,
                   l.due_at <= p_now AND coalesce(l.retry_at <= p_now, true)
                   AND (
                       livewell.stale_at(t.rule, l) <= p_now OR livewell.is_stale(t.rule, l, p_now)
                           OR coalesce(
                               l.demanded_at > p_now - interval '1 minute'
                                   AND l.checked_at < l.demanded_at,
                               false)) AS ready
            FROM unnest(p_types, p_keys) WITH ORDINALITY AS g (name, key, place)
            LEFT JOIN rules t ON t.name = g.name
            LEFT JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
            OFFSET 0) c;        -- so that the rule is computed once
    EXCEPTION WHEN others THEN
        v_ready := NULL;
        v_dues := NULL;
        FOR v_rows IN
            SELECT g.place, g.name, t AS type, l AS ledger
            FROM unnest(p_types, p_keys) WITH ORDINALITY AS g (name, key, place)
            JOIN livewell.data_type t ON t.name = g.name
            JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
        LOOP
            <<alone>>
            BEGIN
                v_dues[v_rows.place] := livewell.next_due(v_rows.type, v_rows.ledger, p_now);
                v_ready[v_rows.place] := v_dues[v_rows.place] <= p_now
                    AND coalesce((v_rows.ledger).due_at <= p_now, false);
            EXCEPTION WHEN others THEN
                PERFORM livewell.warn(
                    'refresh.check', v_rows.name || ': a check failed and counted as stale',
                    SQLERRM);
                v_ready[v_rows.place] := true;
            END alone;
        END LOOP;
    END together;
    IF false = ANY (v_ready) THEN
        UPDATE livewell.ledger l SET due_at = g.due_at
        FROM unnest(p_types, p_keys, v_ready, v_dues) AS g (name, key, ready, due_at)
        WHERE l.data_type = g.name AND l.key = g.key AND NOT g.ready AND l.due_at <= p_now;
    END IF;
    RETURN v_ready;
END
$$;
COMMENT ON FUNCTION livewell.ready_keys IS
    'Which of the given locked keys are stale and may be asked for now.';
REVOKE ALL ON FUNCTION livewell.ready_keys FROM PUBLIC;
