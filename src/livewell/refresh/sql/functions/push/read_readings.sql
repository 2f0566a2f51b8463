-- What is to be shown of some keys, where it differs from what the caller knows: times, verdict and
-- reason, until when the verdict holds, and the value where that is another one.
--
-- Called by: the hub, for streams, watches and waiting gets; get (with nothing known) on a full
--            disk. One round trip for any number of keys, of any number of types.
-- p_known:     status_version, p_verdicts: verdict, p_versions: version of the value; -1 and NULL:
--              nothing is known. A verdict also changes by the mere passing of time.
-- A key that nobody ever asked for is missing, with status_version 0.
-- turns_at:    the next instant at which the verdict may change by itself, and turns_seconds how
--              far away that is on this clock; NULL: it will not. age_seconds: since the last
--              check. Seconds beside instants, because clients count on clocks of their own, which
--              may be wrong by hours (R22).
-- Index:       ledger_pkey; then read_values, once per type.
CREATE OR REPLACE FUNCTION livewell.read_readings(
    p_types text[], p_keys text[], p_known bigint[], p_verdicts text[], p_versions bigint[])
RETURNS TABLE (
    data_type text, key text, verdict text, source_at timestamptz, fetched_at timestamptz,
    checked_at timestamptz, version bigint, status_version bigint, reason text, error text,
    value jsonb, turns_at timestamptz, turns_seconds float8, age_seconds float8)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_type      livewell.data_type;
BEGIN
    FOR v_type IN SELECT d.* FROM livewell.data_type d
    WHERE d.name = ANY (p_types) ORDER BY d.name LOOP
        -- A row that is handed to a function is unpacked each time: without what makes it large.
        v_type.definition := NULL;
        v_type.columns := NULL;
        RETURN QUERY
        WITH asked AS (
            SELECT a.key, a.known, a.shown, a.version
            FROM unnest(
                p_types, p_keys, p_known, p_verdicts, p_versions)
                AS a (name, key, known, shown, version)
            WHERE a.name = v_type.name
        ), changed AS MATERIALIZED (
            SELECT a.key, l.ledger, coalesce((l.ledger).status_version, 0) AS status_version,
                   coalesce((l.ledger).version, 0) AS version, j.verdict, a.version AS had
            FROM asked a
            -- See subscribe.
            LEFT JOIN LATERAL (
                SELECT x AS ledger FROM livewell.ledger x
                WHERE x.data_type = v_type.name AND x.key = a.key OFFSET 0) l ON true
            CROSS JOIN LATERAL (
                SELECT
                    CASE
                        WHEN (l.ledger).key IS NULL THEN 'missing'
                        ELSE livewell.verdict(v_type, l.ledger, v_now)
                    END AS verdict) j
            WHERE coalesce((l.ledger).status_version, 0) <> coalesce(a.known, -1)
              OR j.verdict IS DISTINCT FROM a.shown
        ), wanted AS (
            SELECT array_agg(c.key) AS keys FROM changed c
            WHERE c.version > 0 AND c.version <> coalesce(c.had, -1)
        ), read AS MATERIALIZED (
            SELECT r.key, r.value FROM wanted w, livewell.read_values(v_type.name, w.keys) AS r
            WHERE w.keys IS NOT NULL
        )
        SELECT v_type.name, c.key, c.verdict, (c.ledger).source_at, (c.ledger).fetched_at,
               (c.ledger).checked_at, c.version, c.status_version, (c.ledger).reason,
               (c.ledger).error, r.value,
               t.at, extract(epoch FROM t.at - v_now)::float8,
               extract(epoch FROM v_now - (c.ledger).checked_at)::float8
        FROM changed c
        LEFT JOIN read r ON r.key = c.key
        CROSS JOIN LATERAL (
            SELECT
                CASE
                    WHEN (c.ledger).key IS NOT NULL
                        THEN livewell.verdict_turns_at(v_type, c.ledger, v_now)
                END AS at) t;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.read_readings IS
    'Readings of keys that differ from what the caller knows: verdict and until when it holds, '
    'times, reason, and the value if it is another one.';
REVOKE ALL ON FUNCTION livewell.read_readings FROM PUBLIC;
