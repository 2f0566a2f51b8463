-- Keep what became of these answers, the last sixteen for each key.
--
-- Called by: store_refreshes, with the ledger rows locked and moved: their locks are those of the
--            ring too.
-- Index:     ledger_pkey, refresh_event_pkey.
-- Answers that do not move status_version (singly, unproven, forgotten, type_changed) are left out:
-- they would take the place of the one before.
-- DISTINCT:  a type that changed its pool may have two jobs for a key in one batch.
-- Cost:      5 µs of 335 µs for a result, in batches of 50; runs of it differ by 100 µs. With the
--            duration, which is inside the JSON of a result, it was 16 µs.
CREATE OR REPLACE FUNCTION livewell.keep_answers(
    p_types text[], p_keys text[], p_judged text[], p_wire bigint[], p_decoded bigint[],
    p_now timestamptz)
RETURNS void
LANGUAGE sql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
    INSERT INTO livewell.refresh_event AS e (at, bytes, slot, data_type, key, outcome)
    SELECT DISTINCT ON (l.data_type, l.key) p_now, coalesce(greatest(g.wire, g.decoded), 0),
           l.status_version % 16, l.data_type, l.key, left(g.judged, 40)
    FROM unnest(p_types, p_keys, p_judged, p_wire, p_decoded)
         AS g (type, key, judged, wire, decoded)
    JOIN livewell.ledger l ON l.data_type = g.type AND l.key = g.key
    WHERE g.judged NOT IN ('singly', 'unproven', 'forgotten', 'type_changed')
    ON CONFLICT (data_type, key, slot) DO UPDATE
    SET at = excluded.at, bytes = excluded.bytes, outcome = excluded.outcome
$$;
COMMENT ON FUNCTION livewell.keep_answers IS
    'Keeps the last sixteen answers for each key, for operators.';
REVOKE ALL ON FUNCTION livewell.keep_answers FROM PUBLIC;
