-- As judge_keys, one type at a time: a type whose rule cannot be computed counts as stale, leaves a
-- warning, and changes nothing for the others (contract 4).
--
-- Called by: subscribe, when judge_keys fails for all types together. Index: ledger_pkey.
CREATE OR REPLACE FUNCTION livewell.judge_by_type(
    p_types text[], p_keys text[], p_answers text[], p_now timestamptz)
RETURNS TABLE (
    data_type text, key text, answer text, verdict text, wanted boolean, version bigint,
    status_version bigint, source_at timestamptz, fetched_at timestamptz, checked_at timestamptz,
    age_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_type  pg_catalog.text;
BEGIN
    FOR v_type IN SELECT DISTINCT n FROM unnest(p_types) AS n LOOP
        <<alone>>
        BEGIN
            RETURN QUERY
            SELECT j.* FROM livewell.judge_keys(p_types, p_keys, p_answers, p_now, v_type) AS j;
        EXCEPTION WHEN others THEN
            PERFORM livewell.warn(
                'refresh.check', v_type || ': a check failed and counted as stale', SQLERRM);
            RETURN QUERY
            SELECT g.type, g.key, g.answer, 'stale', g.answer = 'subscribed', l.version,
                   l.status_version, l.source_at, l.fetched_at, l.checked_at, NULL::double precision
            FROM unnest(p_types, p_keys, p_answers)
                 WITH ORDINALITY AS g (type, key, answer, place)
            LEFT JOIN livewell.ledger l ON l.data_type = g.type AND l.key = g.key
            WHERE g.type = v_type ORDER BY g.place;
        END alone;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.judge_by_type IS
    'How fresh keys are, one type at a time: a broken type counts as stale.';
REVOKE ALL ON FUNCTION livewell.judge_by_type FROM PUBLIC;
