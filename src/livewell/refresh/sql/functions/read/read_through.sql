-- Read one key; if what is there is not fresh enough, demand a refresh. One round trip (X5).
--
-- Called by: read_key; app.get, and other clients that read without watching.
-- p_max_age:   seconds since the last check that are fresh enough; NULL: whatever the type's own
--              rule says is not stale.
-- p_user:      whose cold-key budget a key counts for that nobody ever asked for; NULL: somebody
--              trusted. p_cold_max: so many of them a minute.
-- demand:      none (fresh enough, or not asked to), queued, waiting (somebody's refresh is on its
--              way), due (dispatch will come to it), missing (the upstream has said so, and is
--              believed), backed_off (it failed; not before retry_at, whoever asks), throttled
--              (budget, breaker or silence: nothing is queued or written; read_key says which, and
--              until when), parked (not in the plan), paused, cold_budget, bad_key, unknown_type.
-- Steps:       refresh_wanted (is it fresh enough?), refuse_demand (may it be demanded now?),
--              demand_refresh.
-- Strangers cannot spend the quota: the pattern is checked before anything is written, a known
-- failure or absence is answered without a call, unknown keys have a budget per user, and a key has
-- one job, however many ask.
-- Why SECURITY DEFINER: livewell_api has no table rights; of a user it touches the budget alone.
-- Locks: the user's row, then the ledger row (demand_refresh). A crowd of readers of one key that
-- is on its way takes no lock at all.
CREATE OR REPLACE FUNCTION livewell.read_through(
    p_type text, p_key text, p_max_age float8 DEFAULT NULL, p_user text DEFAULT NULL,
    p_cold_max integer DEFAULT 20, p_demand boolean DEFAULT true)
RETURNS TABLE (
    demand text, queue text, verdict text, source_at timestamptz, fetched_at timestamptz,
    checked_at timestamptz, version bigint, status_version bigint, reason text, error text,
    value jsonb)
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
    v_queue     pg_catalog.text;
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', coalesce(p_user, ''), true);
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION
            'values are read with their verdict on the primary only; this server is a replica'
        USING ERRCODE = 'LW001';
    END IF;
    SELECT d.* INTO v_type FROM livewell.data_type d WHERE d.name = p_type;
    IF NOT FOUND THEN
        demand := 'unknown_type';
        RETURN NEXT;
        RETURN;
    END IF;
    -- A row that is handed to a function is unpacked each time: without what makes it large.
    v_type.definition := NULL;
    v_type.columns := NULL;
    IF NOT livewell.key_fits(v_type.key_pattern, p_key) THEN
        demand := 'bad_key';
        RETURN NEXT;
        RETURN;
    END IF;
    v_queue := livewell.refresh_queue(v_type.upstream, v_type.pool);
    queue := v_queue;
    SELECT l.* INTO v_l FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = p_key;
    demand := livewell.refresh_wanted(v_type, v_l, p_max_age, v_now);

    IF demand = 'wanted' AND NOT p_demand THEN
        demand := 'none';
    ELSIF demand = 'wanted' AND v_l.demanded_at > v_now - interval '2 minutes'
          AND EXISTS (
              SELECT FROM livewell.job j
              WHERE j.queue = v_queue AND j.unique_key = p_type || ':' || p_key
                AND j.state = 'running') THEN
        demand := 'waiting';
    ELSIF demand = 'wanted' THEN
        demand := livewell.refuse_demand(v_type, v_l, p_key, v_queue, p_user, p_cold_max, v_now);
        IF demand IS NULL THEN
            demand := livewell.demand_refresh(v_type, p_key, p_max_age);
            -- Whoever was here before us may have stored it, or failed, while we waited for the
            -- row.
            SELECT l.* INTO v_l FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = p_key;
        END IF;
    END IF;

    verdict :=
        CASE WHEN v_l.key IS NULL THEN 'missing' ELSE livewell.verdict(v_type, v_l, v_now) END;
    source_at := v_l.source_at;
    fetched_at := v_l.fetched_at;
    checked_at := v_l.checked_at;
    version := coalesce(v_l.version, 0);
    status_version := coalesce(v_l.status_version, 0);
    reason := v_l.reason;
    error := v_l.error;
    IF version > 0 THEN
        SELECT r.value INTO value FROM livewell.read_values(p_type, ARRAY[p_key]) AS r;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.read_through IS
    'Reads a key with its verdict, and demands a refresh if it is not fresh enough; says what '
    'became of the demand.';
REVOKE ALL ON FUNCTION livewell.read_through FROM PUBLIC;
