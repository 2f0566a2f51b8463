-- A page of the keys of a type, by key, with their verdicts: all, or those of one verdict.
--
-- Called by: the dashboard.
-- Index:     ledger_pkey; ledger_failing_idx for failing, ledger_override_idx for own_ttl.
-- p_wanted:  a verdict; parked (nobody watches it); own_ttl (it has a time to live of its own);
--            NULL: all keys.
-- Answer:    keys; looked: how many keys were looked at; next: where the next page begins, NULL at
--            the end.
-- Bounded:   2,000 keys are looked at, for a verdict takes 10 µs and several times that on a busy
--            machine. A page of a rare verdict may be empty and still have a next one.
CREATE OR REPLACE FUNCTION livewell.list_type_keys(
    p_type text, p_wanted text, p_after text, p_limit integer)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    c_looked_max CONSTANT integer := 2000;
    v_now       timestamptz := livewell.now();
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_cursor    refcursor;
    v_l         livewell.ledger;
    v_verdict   text;
    v_keys      jsonb[] := '{}';
    v_looked    integer := 0;
    v_last      text;
    v_more      boolean;
BEGIN
    -- A row that is handed to a function is unpacked each time: without what makes it large.
    v_type.definition := NULL;
    v_type.columns := NULL;
    IF p_wanted = 'failing' THEN
        OPEN v_cursor NO SCROLL FOR
            SELECT l.* FROM livewell.ledger l
            WHERE l.data_type = p_type AND l.key > p_after COLLATE "C"
              AND l.failing_since IS NOT NULL
            ORDER BY l.key LIMIT c_looked_max + 1;
    ELSIF p_wanted = 'own_ttl' THEN
        OPEN v_cursor NO SCROLL FOR
            SELECT l.* FROM livewell.ledger l
            WHERE l.data_type = p_type AND l.key > p_after COLLATE "C"
              AND l.ttl_override IS NOT NULL
            ORDER BY l.key LIMIT c_looked_max + 1;
    ELSE
        OPEN v_cursor NO SCROLL FOR
            SELECT l.* FROM livewell.ledger l
            WHERE l.data_type = p_type AND l.key > p_after COLLATE "C"
            ORDER BY l.key LIMIT c_looked_max + 1;
    END IF;
    LOOP
        FETCH v_cursor INTO v_l;
        v_more := FOUND;
        EXIT WHEN NOT v_more OR v_looked = c_looked_max OR cardinality(v_keys) >= p_limit;
        v_looked := v_looked + 1;
        v_last := v_l.key;
        v_verdict := CASE
            WHEN v_l.due_at IS NULL THEN 'parked' ELSE livewell.verdict(v_type, v_l, v_now) END;
        CONTINUE WHEN p_wanted <> 'own_ttl' AND p_wanted <> v_verdict;
        v_keys := v_keys || jsonb_build_object(
            'key', v_l.key, 'verdict', v_verdict, 'checked_at', v_l.checked_at,
            'stale_at', nullif(livewell.stale_at(v_type, v_l), '-infinity'),
            'source_at', v_l.source_at, 'failing_since', v_l.failing_since, 'reason', v_l.reason,
            'retry_at', CASE WHEN v_l.retry_at > v_now THEN v_l.retry_at END,
            'own_ttl_seconds', extract(epoch FROM v_l.ttl_override)::float8);
    END LOOP;
    CLOSE v_cursor;
    RETURN jsonb_build_object(
        'keys', to_jsonb(v_keys), 'looked', v_looked, 'next', CASE WHEN v_more THEN v_last END);
END
$$;
COMMENT ON FUNCTION livewell.list_type_keys IS
    'A page of the keys of a type with their verdicts, from a bounded look.';
REVOKE ALL ON FUNCTION livewell.list_type_keys FROM PUBLIC;
