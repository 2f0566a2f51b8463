-- What refresh jobs ask for, and how: the key, the type as it is now, and what the ledger knows about asking. One row for each key, in their order.
--
-- Called by: enqueue_refreshes, refresh_job. Index: data_type_pkey, ledger_pkey.
-- Arrays, not a call for each key: 500 calls with a row of the ledger took 19 ms of a due check, this takes 4.
-- etag, last_modified, hash: "has it changed since what is stored?", if what is stored was read by the type as it is now: an older definition may have left out columns that the upstream would not send again.
-- One job per key, so nothing else can be stored before it is asked; and the store compares the hash once more.
-- since: of a series, the source's time of what is stored: the worker asks only for what can still change since then, if the type has a revision window.
-- fresh: on a connection of its own, because the key failed or was missing last time, and an answer like that proves nothing on a shared one (ADR 0011).
CREATE OR REPLACE FUNCTION livewell.refresh_payloads(p_types text[], p_keys text[])
RETURNS TABLE (failing boolean, payload jsonb)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    RETURN QUERY
    SELECT l.failing_since IS NOT NULL,
           CASE WHEN x.ill OR x.known THEN jsonb_strip_nulls(jsonb_build_object('type', g.data_type, 'key', g.key, 'version', t.version, 'fresh', nullif(x.ill, false),
                    'etag', CASE WHEN x.known THEN l.etag END, 'last_modified', CASE WHEN x.known THEN l.last_modified END, 'hash', CASE WHEN x.known THEN encode(l.content_hash, 'hex') END,
                    'since', CASE WHEN x.known AND t.rows_kind = 'series' THEN l.source_at END))
                ELSE jsonb_build_object('type', g.data_type, 'key', g.key, 'version', t.version) END
    FROM unnest(p_types, p_keys) WITH ORDINALITY AS g (data_type, key, place)
    LEFT JOIN livewell.data_type t ON t.name = g.data_type
    LEFT JOIN livewell.ledger l ON l.data_type = g.data_type AND l.key = g.key
    CROSS JOIN LATERAL (
        SELECT l.missing OR l.failing_since IS NOT NULL AS ill,
               l.fetched_at IS NOT NULL AND l.checked_at > t.applied_at AND (t.rows_kind = 'series' OR l.etag IS NOT NULL OR l.last_modified IS NOT NULL) AS known) x
    ORDER BY g.place;
END
$$;
COMMENT ON FUNCTION livewell.refresh_payloads IS 'The payloads of refresh jobs (key, type, version, and the conditions to ask with), and whether the key is failing.';
REVOKE ALL ON FUNCTION livewell.refresh_payloads FROM PUBLIC;
