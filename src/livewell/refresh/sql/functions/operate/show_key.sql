-- What the ledger knows of one key, beside what why_key says; no row if nobody ever asked for it.
--
-- Called by: the dashboard.
-- Index:     ledger_pkey, data_type_pkey.
-- turns_at:  the next instant at which the verdict may change by itself; NULL: it will not.
CREATE OR REPLACE FUNCTION livewell.show_key(p_type text, p_key text)
RETURNS TABLE (
    version bigint, changed_at timestamptz, due_at timestamptz, wanted_at timestamptz,
    event_at timestamptz, turns_at timestamptz, ttl_seconds float8, own_ttl boolean, etag text,
    last_modified text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_type      livewell.data_type := livewell.registered_type(p_type);
BEGIN
    v_type.definition := NULL;
    v_type.columns := NULL;
    RETURN QUERY
    SELECT l.version, l.changed_at, l.due_at, l.wanted_at, l.event_at,
           livewell.verdict_turns_at(v_type, l, v_now),
           extract(epoch FROM coalesce(l.ttl_override, v_type.ttl))::float8,
           l.ttl_override IS NOT NULL, l.etag, l.last_modified
    FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = p_key;
END
$$;
COMMENT ON FUNCTION livewell.show_key IS 'What the ledger knows of one key, for operators.';
REVOKE ALL ON FUNCTION livewell.show_key FROM PUBLIC;
