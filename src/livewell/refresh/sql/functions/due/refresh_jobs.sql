-- The jobs that refresh these keys, as enqueue_jobs takes them: one row per key whose type exists.
--
-- Called by: enqueue_refreshes (due check and walks), demand_refresh (read-through). The one place
-- that says what such a job looks like. The lane is the caller's, never the registry's
-- (contract 8).
-- unique_key: one job per (type, key), however many ask (R8); policy raise gives it the better
--             lane.
-- group_key:  never two calls at once for one key of an upstream.
-- call_key:   jobs that share it may share one HTTP call; NULL would share with all. Keys of a type
--             with a batch endpoint share by the caller's number of the call. Without p_calls as
--             many ids in a row as a call may have keys share one, so jobs that were made one by
--             one go together, and a call never has more. Keys that fail go with each other, never
--             with those that are well (the !): what they bring may make the whole answer
--             unreadable (R14).
-- units:      expected_size, what the limiter reserves.
-- payload:    the key, and the type as it is now.
--     etag, last_modified, hash: "has it changed since what is stored?", if what is stored was read
--         by the type as it is now: an older definition may have left out columns that the upstream
--         would not send again. One job per key, so nothing else can be stored before it is asked;
--         and the store compares the hash once more.
--     since: of a series, the source's time of what is stored: the worker asks only for what can
--         still change since then, if the type has a revision window.
--     fresh: on a connection of its own, because the key failed or was missing last time, and an
--         answer like that proves nothing on a shared one (ADR 0011).
-- Arrays, not a call for each key: to make 500 payloads took 19 ms of a due check by a call for
-- each, and 4 ms by one call for all. Index: data_type_pkey, ledger_pkey.
CREATE OR REPLACE FUNCTION livewell.refresh_jobs(
    p_types text[], p_keys text[], p_lanes integer[], p_calls integer[] DEFAULT NULL)
RETURNS TABLE (
    id bigint, queue text, kind text, lane integer, unique_key text, policy text, group_key text,
    call_key text, units bigint, max_attempts integer, payload jsonb)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_n     integer := coalesce(cardinality(p_keys), 0);
    v_ids   bigint[];
BEGIN
    v_ids := ARRAY(
        SELECT b + o
        FROM livewell.reserve_job_ids((v_n + 63) / 64) AS b, generate_series(0, 63) AS o
        ORDER BY 1 LIMIT v_n);
    RETURN QUERY
    WITH types AS MATERIALIZED (
        SELECT t.name, t.version, t.applied_at, t.keys_max, t.rows_kind = 'series' AS series,
               livewell.refresh_queue(t.upstream, t.pool) AS queue,
               livewell.expected_size(t.upstream, t.name, t.size_estimate) AS units
        FROM livewell.data_type t WHERE t.name = ANY (p_types)
    )
    SELECT v_ids[g.place], t.queue, 'livewell.refresh', g.lane,
           g.type || ':' || g.key, 'raise', g.key,
           CASE
               WHEN t.keys_max = 1 THEN g.type || ':' || g.key
               ELSE g.type || '#'
                    || coalesce(
                        v_ids[1] || '.' || g.call,
                        (v_ids[g.place] / 64 / t.keys_max)::pg_catalog.text)
                    || CASE WHEN l.failing_since IS NOT NULL THEN '!' ELSE '' END
           END,
           t.units, 4,
           CASE
               WHEN x.ill OR x.known THEN jsonb_strip_nulls(jsonb_build_object(
                   'type', g.type, 'key', g.key, 'version', t.version,
                   'fresh', nullif(x.ill, false),
                   'etag', CASE WHEN x.known THEN l.etag END,
                   'last_modified', CASE WHEN x.known THEN l.last_modified END,
                   'hash', CASE WHEN x.known THEN encode(l.content_hash, 'hex') END,
                   'since', CASE WHEN x.known AND t.series THEN l.source_at END))
               ELSE jsonb_build_object('type', g.type, 'key', g.key, 'version', t.version)
           END
    FROM unnest(p_types, p_keys, p_lanes, p_calls)
         WITH ORDINALITY AS g (type, key, lane, call, place)
    JOIN types t ON t.name = g.type
    LEFT JOIN livewell.ledger l ON l.data_type = g.type AND l.key = g.key
    CROSS JOIN LATERAL (
        SELECT l.missing OR l.failing_since IS NOT NULL AS ill,
               l.fetched_at IS NOT NULL AND l.checked_at > t.applied_at
               AND (t.series OR l.etag IS NOT NULL OR l.last_modified IS NOT NULL) AS known) x;
END
$$;
COMMENT ON FUNCTION livewell.refresh_jobs IS
    'The jobs that refresh keys, as enqueue_jobs takes them.';
REVOKE ALL ON FUNCTION livewell.refresh_jobs FROM PUBLIC;
