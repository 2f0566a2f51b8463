-- What may be said of a value at this instant: missing, failing, stale, lagging, unverifiable or
-- fresh, in this order (X1).
--
-- Called by: judge_keys, list_type_keys, list_watched_keys, read_readings, read_through,
--            sample_refresh, sample_watched, why_key; everything that shows a value. Computed from
--            stored times, never stored itself (R5). Not on a replica, which may be behind without
--            knowing (R28).
-- missing:      the upstream says there is no such key, and that is still believed; or there is no
--               value and nothing has failed.
-- failing:      the last attempt failed (failing_since or failures say so), and the value is stale
--               or there is none. A value that is not stale by its rule keeps its verdict while
--               retries fail.
-- lagging:      the source's own time is older than max_source_age. For the rule session that is
--               measured in trading time: outside a session at the last close, and just after the
--               opening what is left of max_source_age counts from the close before. A source that
--               says Friday 16:00 is lagging on Monday at 10:30, not on Sunday (failure stories 6
--               and 7).
-- unverifiable: the source gives no time of its own, so nobody can tell how old it is.
CREATE OR REPLACE FUNCTION livewell.verdict(
    p_type livewell.data_type, p_ledger livewell.ledger, p_now timestamptz)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_stale     boolean;
    v_failing   boolean := coalesce(p_ledger.failures, 0) > 0 OR p_ledger.failing_since IS NOT NULL;
    v_oldest    timestamp with time zone;
    v_open      timestamp with time zone;
    v_close     timestamp with time zone;
    v_before    timestamp with time zone;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION
            'how fresh a value is, is judged on the primary only; this server is a replica'
        USING ERRCODE = 'LW001';
    END IF;
    v_stale := livewell.is_stale(p_type, p_ledger, p_now);
    IF p_ledger.missing AND NOT v_stale THEN
        RETURN 'missing';
    END IF;
    IF v_stale THEN
        RETURN
            CASE
                WHEN v_failing THEN 'failing'
                WHEN p_ledger.fetched_at IS NULL THEN 'missing'
                ELSE 'stale' END;
    END IF;
    IF NOT p_type.has_source_time OR p_ledger.source_at IS NULL THEN
        RETURN 'unverifiable';
    END IF;
    IF p_type.max_source_age IS NOT NULL THEN
        v_oldest := p_now - extract(epoch FROM p_type.max_source_age) * interval '1 second';
        IF p_type.rule = 'session' AND p_ledger.source_at < v_oldest THEN
            SELECT s.opens_at, s.closes_at INTO v_open, v_close FROM livewell.exchange_session s
            WHERE s.calendar = p_type.calendar AND s.opens_at <= p_now ORDER BY s.opens_at DESC
            LIMIT 1;
            IF v_close <= p_now THEN
                -- Only inside the stored calendar: after its end the last close is long ago, and
                -- nothing would ever lag.
                IF EXISTS (
                    SELECT FROM livewell.exchange_session s
                    WHERE s.calendar = p_type.calendar AND s.opens_at > p_now) THEN
                    v_oldest := v_oldest - (p_now - v_close);
                END IF;
            ELSIF v_open > v_oldest THEN
                SELECT s.closes_at INTO v_before FROM livewell.exchange_session s
                WHERE s.calendar = p_type.calendar AND s.opens_at < v_open ORDER BY s.opens_at DESC
                LIMIT 1;
                v_oldest := coalesce(v_oldest - (v_open - v_before), v_oldest);
            END IF;
        END IF;
        IF p_ledger.source_at < v_oldest THEN
            RETURN 'lagging';
        END IF;
    END IF;
    RETURN 'fresh';
END
$$;
COMMENT ON FUNCTION livewell.verdict IS
    'missing, failing, stale, lagging, unverifiable or fresh, at p_now.';
REVOKE ALL ON FUNCTION livewell.verdict FROM PUBLIC;
