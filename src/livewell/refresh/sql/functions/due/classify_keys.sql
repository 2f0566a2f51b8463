-- Write the class of keys whose viewers were counted, where it is another one than before.
--
-- Called by: due_candidates, recount_viewers. Index: ledger_pkey.
-- Why SKIP LOCKED: a class is a hint, and whoever holds the row writes it; it is counted again.
CREATE OR REPLACE FUNCTION livewell.classify_keys(
    p_types text[], p_keys text[], p_classes integer[], p_viewers integer[])
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
    c_bounds    CONSTANT integer[] := '{1,2,4,8,16,32,64,128,256,512}';
    -- Types; the few of them are read once: joined, they cost 34 ms of 97 for 500 keys.
    v_scheduled text[];
    v_new       record;                 -- what differs, as arrays
    v_written   integer := 0;
BEGIN
    v_scheduled := ARRAY(
        SELECT d.name FROM livewell.data_type d
        WHERE d.strategy = 'scheduled' AND d.name = ANY (p_types));
    SELECT array_agg(c.name) AS types, array_agg(c.key) AS keys, array_agg(c.class) AS classes
    INTO v_new FROM (
        SELECT g.name, g.key, g.class AS was,
               width_bucket(g.viewers, c_bounds)
                   * CASE WHEN g.name = ANY (v_scheduled) THEN -1 ELSE 1 END AS class
        FROM unnest(p_types, p_keys, p_classes, p_viewers) AS g (name, key, class, viewers)) c
    WHERE c.class <> c.was;
    IF v_new.keys IS NOT NULL THEN
        -- LATERAL and the row's own place: by the key, then by the row, whatever the statistics
        -- say.
        UPDATE livewell.ledger l SET demand_class = x.class
        FROM (
            SELECT g.class, r.place
            FROM unnest(v_new.types, v_new.keys, v_new.classes) AS g (name, key, class)
              CROSS JOIN LATERAL (
                  SELECT o.ctid AS place FROM livewell.ledger o
                  WHERE o.data_type = g.name AND o.key = g.key FOR NO KEY UPDATE SKIP LOCKED) r
              OFFSET 0) x
        WHERE l.ctid = x.place;
        GET DIAGNOSTICS v_written = ROW_COUNT;
    END IF;
    RETURN v_written;
END
$$;
COMMENT ON FUNCTION livewell.classify_keys IS
    'Writes the class of counted keys where it changed; answers how many.';
REVOKE ALL ON FUNCTION livewell.classify_keys FROM PUBLIC;
