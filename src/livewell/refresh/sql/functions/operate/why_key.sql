-- Why is this key as fresh, or as stale, as it is? One answer, the first that applies, in the order
-- in which things would have to be overcome (X8).
--
-- Called by: `livewell why`, GET /v1/data/{type}/{key}/why.
-- Index:     data_type_pkey, ledger_pkey, subscription_key_idx.
-- Reasons:
--     unknown_type, bad_key, never_asked
--         there is nothing to be fresh
--     fresh, unverifiable, lagging, missing
--         not stale by its rule: the verdict says what else is to be said
--     parked_type, paused_type, paused_upstream
--         stale, and by somebody's will not refreshed
--     parked_key, failing
--         stale, and not asked for again before retry_at
--     and what why_refresh says of the refresh of a stale key
-- It looks without locks: the answer is about this moment. Runs with the rights of its caller, who
-- must see all viewers and jobs: not for livewell_api.
CREATE OR REPLACE FUNCTION livewell.why_key(p_type text, p_key text)
RETURNS TABLE (
    reason text, verdict text, viewers integer, source_at timestamptz, fetched_at timestamptz,
    checked_at timestamptz, fresh_until timestamptz, failing_since timestamptz, failures integer,
    failure text, error text, retry_at timestamptz, job_id bigint, lane integer, n bigint,
    of_limit bigint, other_id bigint, name text, since timestamptz, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_type      livewell.data_type;
    v_upstream  livewell.upstream;
    v_l         livewell.ledger;
BEGIN
    SELECT d.* INTO v_type FROM livewell.data_type d WHERE d.name = p_type;
    IF NOT FOUND THEN
        reason := 'unknown_type';
        RETURN NEXT;
        RETURN;
    END IF;
    -- A row that is handed to a function is unpacked each time: without what makes it large.
    v_type.definition := NULL;
    v_type.columns := NULL;
    IF NOT livewell.key_fits(v_type.key_pattern, p_key) THEN
        reason := 'bad_key';
        name := v_type.key_pattern;
        RETURN NEXT;
        RETURN;
    END IF;
    viewers := livewell.count_viewers(p_type, p_key);
    SELECT l.* INTO v_l FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = p_key;
    IF NOT FOUND THEN
        reason := 'never_asked';
        verdict := 'missing';
        RETURN NEXT;
        RETURN;
    END IF;
    verdict := livewell.verdict(v_type, v_l, v_now);
    source_at := v_l.source_at;
    fetched_at := v_l.fetched_at;
    checked_at := v_l.checked_at;
    fresh_until := nullif(livewell.stale_at(v_type, v_l), '-infinity');
    failing_since := v_l.failing_since;
    failures := v_l.failures;
    failure := v_l.reason;
    error := v_l.error;
    retry_at := v_l.retry_at;
    IF NOT livewell.is_stale(v_type, v_l, v_now) THEN
        reason := verdict;
        RETURN NEXT;
        RETURN;
    END IF;

    -- Stale. By whose will?
    SELECT u.* INTO v_upstream FROM livewell.upstream u WHERE u.name = v_type.upstream;
    IF v_type.parked_reason IS NOT NULL THEN
        reason := 'parked_type';
        name := v_type.parked_reason;
    ELSIF v_type.paused_at IS NOT NULL THEN
        reason := 'paused_type';
        name := p_type;
        since := v_type.paused_at;
    ELSIF v_upstream.paused_at IS NOT NULL THEN
        reason := 'paused_upstream';
        name := v_upstream.name;
        since := v_upstream.paused_at;
    ELSIF v_l.retry_at > v_now THEN
        reason := CASE livewell.refresh_reasons() -> v_l.reason ->> 'ledger'
            WHEN 'parked_key' THEN 'parked_key' ELSE 'failing' END;
        since := v_l.failing_since;
        wait_seconds := extract(epoch FROM v_l.retry_at - v_now);
    ELSE
        SELECT w.reason, w.job_id, w.lane, w.n, w.of_limit, w.other_id, w.name, w.since,
               w.wait_seconds
        INTO reason, job_id, lane, n, of_limit, other_id, name, since, wait_seconds
        FROM livewell.why_refresh(v_type, v_l, viewers, v_now) AS w;
        -- A job that is delayed because it failed is failing.
        IF reason = 'delayed' AND v_l.failing_since IS NOT NULL THEN
            reason := 'failing';
            retry_at := since;
            since := v_l.failing_since;
        END IF;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.why_key IS
    'Why a key is fresh, or what stands in the way of its refresh: the first thing that does.';
REVOKE ALL ON FUNCTION livewell.why_key FROM PUBLIC;
