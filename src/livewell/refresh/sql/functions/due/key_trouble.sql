-- What went wrong with a key and its upstream, beside what why_key says: answers in a row that
-- brought nothing, and calls that are stopped.
--
-- Called by: `livewell why`, GET /v1/data/{type}/{key}/why, in one statement with why_key, whose
--            columns workers of 0.5.0 know.
-- Index:     ledger_pkey, limiter_credential_pkey, limiter_calls_pkey.
CREATE OR REPLACE FUNCTION livewell.key_trouble(p_type text, p_key text)
RETURNS TABLE (
    tries integer, tried_at timestamptz, older_since timestamptz, older_source_at timestamptz,
    open_until timestamptz, opened integer, calls bigint, calls_failed bigint,
    opened_at timestamptz, cause text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT l.tries, l.tried_at, l.older_since, l.older_source_at, t.open_until, t.opened, t.calls,
           t.calls_failed, t.opened_at, t.cause
    FROM livewell.ledger l
    LEFT JOIN LATERAL (SELECT * FROM livewell.limiter_trouble(l.upstream, v_now) LIMIT 1) t ON true
    WHERE l.data_type = p_type AND l.key = p_key;
END
$$;
COMMENT ON FUNCTION livewell.key_trouble IS
    'Answers in a row that brought nothing for a key, and what stops the calls of its upstream.';
REVOKE ALL ON FUNCTION livewell.key_trouble FROM PUBLIC;
