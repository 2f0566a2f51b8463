-- Read one key as read_through does, and say until when its verdict holds. One round trip (X5,
-- R22).
--
-- Called by: refresh_key; app.get, and other clients that read without watching.
-- turns_at:    the next instant at which the verdict may change by itself, and turns_seconds how
--              far away that is on this clock; NULL: it will not. age_seconds: since the last
--              check.
-- throttled:   for a demand that cannot be served now, why: budget, breaker, upstream (it asked for
--              silence), probe, backed_off, paused, parked; retry_at: when to ask again, NULL if
--              nobody knows (X5, R11).
-- The clock is read before the verdict is judged, and the row after it: an instant between the two
-- is not overlooked, and of a row that has changed meanwhile it is said that the verdict turns now.
-- Why SECURITY DEFINER: livewell_api has no table rights.
-- Index:       ledger_pkey, once more.
CREATE OR REPLACE FUNCTION livewell.read_key(
    p_type text, p_key text, p_max_age float8 DEFAULT NULL, p_user text DEFAULT NULL,
    p_cold_max integer DEFAULT 20)
RETURNS TABLE (
    demand text, queue text, verdict text, source_at timestamptz, fetched_at timestamptz,
    checked_at timestamptz, version bigint, status_version bigint, reason text, error text,
    value jsonb,
    turns_at timestamptz, turns_seconds float8, age_seconds float8, throttled text,
    retry_at timestamptz, retry_seconds float8)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_type      livewell.data_type;
    v_l         livewell.ledger;
BEGIN
    SELECT r.demand, r.queue, r.verdict, r.source_at, r.fetched_at, r.checked_at, r.version,
           r.status_version, r.reason, r.error, r.value
    INTO demand, queue, verdict, source_at, fetched_at, checked_at, version, status_version, reason,
         error, value
    FROM livewell.read_through(p_type, p_key, p_max_age, p_user, p_cold_max) AS r;
    SELECT l.* INTO v_l FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = p_key;
    IF FOUND AND verdict IS NOT NULL THEN
        SELECT d.* INTO v_type FROM livewell.data_type d WHERE d.name = p_type;
        -- A row that is handed to a function is unpacked each time: without what makes it large.
        v_type.definition := NULL;
        v_type.columns := NULL;
        turns_at :=
            CASE
                WHEN v_l.status_version = status_version
                    THEN livewell.verdict_turns_at(v_type, v_l, v_now)
                ELSE v_now END;
        turns_seconds := extract(epoch FROM turns_at - v_now);
        age_seconds := extract(epoch FROM v_now - checked_at);
    END IF;
    IF demand IN ('throttled', 'backed_off', 'paused', 'parked') THEN
        throttled := demand;
        retry_at := CASE demand WHEN 'backed_off' THEN v_l.retry_at END;
        IF demand = 'throttled' THEN
            -- Opened again since: ask again soon.
            SELECT coalesce(h.reason, 'probe'), coalesce(h.retry_at, v_now + interval '1 second')
            INTO throttled, retry_at
            FROM livewell.data_type d
            CROSS JOIN LATERAL livewell.read_throttle(
                d.upstream, d.name, d.size_estimate, v_now) AS h
            WHERE d.name = p_type;
        END IF;
        retry_seconds := extract(epoch FROM retry_at - v_now);
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.read_key IS
    'Reads a key with its verdict and until when that holds, and demands a refresh if it is not '
    'fresh enough; says what became of the demand.';
REVOKE ALL ON FUNCTION livewell.read_key FROM PUBLIC;
