-- The instant at which a value is stale by its rule; -infinity when there is none.
--
-- Called by: many functions; next_due, is_stale, verdict. A pure function of the two rows and the
--            calendar: nothing is flagged, nothing has a default (R5, contract 13).
-- Index:     exchange_session_pkey, two probes, for the rule session only.
-- age:         checked_at + time to live (the key's own, or the type's). For "there is no such
--              key": checked_at + negative_ttl.
-- after_event: the same, but at the event if the last check was before it.
-- session:     a value that was checked after a close is final until the next opening, and then as
--              old as it is; any other: age. "After the close" means that the source says so
--              itself, or that it was asked max_source_age after the close: a source that runs 15
--              minutes late still gives a price from before the close at 16:05, and that is not
--              Friday's close. Beyond the end of the stored calendar: age, which asks too often
--              rather than too seldom.
-- Durations are added as seconds: a day has 24 hours whatever the time zone of the session that
-- asks.
CREATE OR REPLACE FUNCTION livewell.stale_at(p_type livewell.data_type, p_ledger livewell.ledger)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_ttl       double precision := extract(epoch FROM coalesce(p_ledger.ttl_override, p_type.ttl));
    v_checked   timestamp with time zone := coalesce(p_ledger.checked_at, p_ledger.fetched_at);
    v_stale     timestamp with time zone;
    v_close     timestamp with time zone;
    v_open      timestamp with time zone;
BEGIN
    IF v_ttl IS NULL OR v_ttl <= 0 THEN
        RAISE EXCEPTION 'a time to live of %: it must be more than nothing, for type %',
            coalesce(p_ledger.ttl_override, p_type.ttl), p_type.name
        USING ERRCODE = 'LW020';
    END IF;
    IF p_ledger.missing THEN
        RETURN coalesce(
            v_checked + extract(epoch FROM p_type.negative_ttl) * interval '1 second', '-infinity');
    END IF;
    IF p_ledger.fetched_at IS NULL THEN
        RETURN '-infinity';
    END IF;
    v_stale := v_checked + v_ttl * interval '1 second';
    IF p_type.rule = 'after_event' AND v_checked < p_ledger.event_at THEN
        RETURN least(v_stale, p_ledger.event_at);
    END IF;
    IF p_type.rule = 'session' THEN
        SELECT s.closes_at
        INTO v_close FROM livewell.exchange_session s
        WHERE s.calendar = p_type.calendar AND s.opens_at <= v_checked ORDER BY s.opens_at DESC
        LIMIT 1;
        IF v_close <= v_checked
           AND (
               p_ledger.source_at >= v_close
                   OR v_checked >= v_close + coalesce(extract(epoch FROM p_type.max_source_age), 0)
                       * interval '1 second') THEN
            SELECT s.opens_at
            INTO v_open FROM livewell.exchange_session s
            WHERE s.calendar = p_type.calendar AND s.opens_at > v_checked ORDER BY s.opens_at
            LIMIT 1;
            RETURN greatest(v_stale, v_open);
        END IF;
    END IF;
    RETURN v_stale;
END
$$;
COMMENT ON FUNCTION livewell.stale_at IS
    'When a value goes stale by its rule; -infinity when there is no value. Raises when the time '
    'to live is not positive.';
REVOKE ALL ON FUNCTION livewell.stale_at FROM PUBLIC;
