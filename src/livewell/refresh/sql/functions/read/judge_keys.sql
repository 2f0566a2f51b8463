-- How fresh each of these pairs is, in the order given; p_only: only those of one type.
--
-- Called by: judge_by_type; subscribe alone, whose planner settings hold here too (to set them
--            again takes 45 µs), for all types at once, and type by type if that fails. Index:
--            ledger_pkey, data_type_pkey.
CREATE OR REPLACE FUNCTION livewell.judge_keys(
    p_types text[], p_keys text[], p_answers text[], p_now timestamptz, p_only text DEFAULT NULL)
RETURNS TABLE (
    data_type text, key text, answer text, verdict text, wanted boolean, version bigint,
    status_version bigint, source_at timestamptz, fetched_at timestamptz, checked_at timestamptz,
    age_seconds float8)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH rules AS MATERIALIZED (
        -- Without what makes it large, once per type: a row that is handed to a function is
        -- unpacked each time (1 ms of a shipped type).
        SELECT jsonb_populate_record(d, '{"definition": {}, "columns": []}') AS rule, d.name
        FROM livewell.data_type d
        WHERE d.name = ANY (p_types)
    )
    SELECT g.type, g.key, g.answer,
           CASE WHEN t.name IS NULL THEN 'stale' ELSE livewell.verdict(t.rule, l.ledger, p_now) END,
           g.answer = 'subscribed' AND t.name IS NOT NULL
               AND livewell.is_stale(t.rule, l.ledger, p_now)
               AND coalesce((l.ledger).retry_at <= p_now, true),
           (l.ledger).version, (l.ledger).status_version, (l.ledger).source_at,
           (l.ledger).fetched_at, (l.ledger).checked_at,
           extract(epoch FROM p_now - (l.ledger).checked_at)::double precision
    FROM unnest(p_types, p_keys, p_answers) WITH ORDINALITY AS g (type, key, answer, place)
    -- See subscribe.
    LEFT JOIN rules t ON t.name = g.type
    LEFT JOIN LATERAL (
        SELECT x AS ledger FROM livewell.ledger x
        WHERE x.data_type = g.type AND x.key = g.key OFFSET 0) l ON true
    WHERE p_only IS NULL OR g.type = p_only
    ORDER BY g.place;
END
$$;
COMMENT ON FUNCTION livewell.judge_keys IS 'Verdict, ages and versions of many keys.';
REVOKE ALL ON FUNCTION livewell.judge_keys FROM PUBLIC;
