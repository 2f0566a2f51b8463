-- Lock what these results are about, and give those whose jobs are still this worker's, as arrays
-- in the order of types and keys; with the time at which all of it was locked.
--
-- Called by: store_refreshes, first. A result is ours by its job's id, fence and worker.
-- Index:     job_pkey, ledger_pkey. Nested loops only, for the statistics of a small or new table
--            would otherwise have it read whole.
-- Locks:     job rows by id, then ledger rows by type and key. Each look is a statement of its own
--            after the lock, so it sees what was committed before.
CREATE OR REPLACE FUNCTION livewell.own_results(p_worker bigint, p_results jsonb)
RETURNS TABLE (
    ids bigint[], fences bigint[], types text[], keys text[], results jsonb[], at timestamptz)
LANGUAGE plpgsql
SET search_path = ''
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_given bigint[] := ARRAY(
        SELECT (e ->> 'id')::bigint FROM jsonb_array_elements(p_results) AS e);
    v_now   timestamptz;
BEGIN
    PERFORM FROM livewell.job j WHERE j.id = ANY (v_given) AND j.worker = p_worker
    ORDER BY j.id FOR UPDATE;
    SELECT array_agg(o.id), array_agg(o.fence), array_agg(o.name), array_agg(o.key),
           array_agg(o.result)
    INTO ids, fences, types, keys, results FROM (
        SELECT j.id, j.fence, j.payload ->> 'type' AS name, j.payload ->> 'key' AS key, e AS result
        FROM jsonb_array_elements(p_results) AS e
        -- OFFSET 0: by primary key. Statistics from when nothing ran say that worker = p_worker
        -- finds next to nothing, and then the whole table is read for it (223 ms for 99 results).
        CROSS JOIN LATERAL (
            SELECT b.id, b.fence, b.worker, b.payload FROM livewell.job b
            WHERE b.id = (e ->> 'id')::bigint OFFSET 0) j
        WHERE j.fence = (e ->> 'fence')::bigint AND j.worker = p_worker
        ORDER BY j.payload ->> 'type' COLLATE "C", j.payload ->> 'key' COLLATE "C") o;
    IF EXISTS (
        SELECT FROM unnest(types, keys) AS u (name, key)
        GROUP BY u.name, u.key
        HAVING count(*) > 1) THEN
        -- Sent one by one, each is compared with the other.
        RAISE EXCEPTION 'two results for one key in one call' USING ERRCODE = '22023';
    END IF;
    PERFORM FROM unnest(types, keys) AS u (name, key)
    JOIN livewell.ledger l ON l.data_type = u.name AND l.key = u.key
    ORDER BY l.data_type, l.key FOR NO KEY UPDATE OF l;
    v_now := livewell.now();
    IF (SELECT count(*) FROM unnest(types, keys) AS u (name, key)
        JOIN livewell.ledger l ON l.data_type = u.name AND l.key = u.key)
       < coalesce(cardinality(keys), 0) THEN
        -- Somebody removed the row since the job was made; new rows are ours alone.
        INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at)
        SELECT d.name, u.key, d.upstream, v_now, v_now FROM unnest(types, keys) AS u (name, key)
        JOIN livewell.data_type d ON d.name = u.name ORDER BY d.name, u.key
        ON CONFLICT (data_type, key) DO UPDATE SET status_at = livewell.ledger.status_at;
    END IF;
    at := v_now;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.own_results IS
    'Locks the jobs and ledger rows of results, and gives the results that are still this '
    'worker''s.';
REVOKE ALL ON FUNCTION livewell.own_results FROM PUBLIC;
