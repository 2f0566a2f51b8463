-- Give one key a time to live of its own (R2). It takes effect at once: the key is due when the new
-- time says, and who streams it is told.
--
-- Called by: clear_ttl; `livewell types ttl set`, the API. A key that nobody asked for yet gets its
--            row here, parked.
-- A parked key (due_at NULL) stays parked: nobody watches it.
-- The lock comes first: a row that prune_refresh deletes just then is gone after the wait, and is
-- made anew (race-tested).
CREATE OR REPLACE FUNCTION livewell.set_ttl(p_type text, p_key text, p_ttl interval)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_row       livewell.ledger;
    v_now       timestamptz;
BEGIN
    IF NOT livewell.key_fits(v_type.key_pattern, p_key) THEN
        RAISE EXCEPTION 'key "%" does not fit % of type %', left(p_key, 60), v_type.key_pattern,
            p_type
        USING ERRCODE = 'LW003';
    END IF;
    IF p_ttl <= interval '0' OR p_ttl > interval '400 days' THEN
        RAISE EXCEPTION 'ttl % of % %: more than 0 and at most 400 days is allowed', p_ttl, p_type,
            p_key
        USING ERRCODE = 'LW003';
    END IF;
    SELECT *
    INTO v_row FROM livewell.ledger l
    WHERE l.data_type = v_type.name AND l.key = p_key FOR UPDATE;
    v_now := livewell.now();
    IF NOT FOUND THEN
        INSERT INTO livewell.ledger (data_type, key, upstream, status_at)
        VALUES (v_type.name, p_key, v_type.upstream, v_now) ON CONFLICT DO NOTHING;
        SELECT *
        INTO v_row FROM livewell.ledger l
        WHERE l.data_type = v_type.name AND l.key = p_key FOR UPDATE;
    END IF;
    IF v_row.ttl_override IS NOT DISTINCT FROM p_ttl THEN
        RETURN;
    END IF;
    v_row.ttl_override := p_ttl;
    UPDATE livewell.ledger l
    SET ttl_override = p_ttl,
        due_at = CASE WHEN l.due_at IS NOT NULL THEN livewell.next_due(v_type, v_row, v_now) END,
        status_version = l.status_version + 1, status_at = greatest(v_now, l.status_at)
    WHERE l.data_type = v_type.name AND l.key = p_key;
END
$$;
COMMENT ON FUNCTION livewell.set_ttl IS 'Sets the time to live of one key; NULL takes it away.';
REVOKE ALL ON FUNCTION livewell.set_ttl FROM PUBLIC;
