-- The next instant at which the verdict on a value may be another one although nothing is stored;
-- NULL when time alone changes nothing. Never later than the truth, now and then earlier.
--
-- Called by: read_key, show_key; read_readings, so that whoever shows a value knows when to look again.
-- Every instant that stale_at, is_stale and verdict compare p_now with: the end of the time to
-- live; five seconds before a check that lies in the future; the source's own time +
-- max_source_age, and, for the rule session, the next opening and close, and what is left of
-- max_source_age after an opening. A candidate too many costs one look, a missing one a verdict
-- that is wrong for a minute.
-- Index:     exchange_session_pkey, a few probes, for the rule session only.
CREATE OR REPLACE FUNCTION livewell.verdict_turns_at(
    p_type livewell.data_type, p_ledger livewell.ledger, p_now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_lags      timestamp with time zone := p_ledger.source_at
        + extract(epoch FROM p_type.max_source_age) * interval '1 second';
    v_open      timestamp with time zone;       -- the session that began last
    v_close     timestamp with time zone;
    v_before    timestamp with time zone;       -- the close before it
    v_next      timestamp with time zone;       -- the next opening
BEGIN
    IF p_type.rule = 'session' THEN
        SELECT s.opens_at, s.closes_at INTO v_open, v_close FROM livewell.exchange_session s
        WHERE s.calendar = p_type.calendar AND s.opens_at <= p_now ORDER BY s.opens_at DESC LIMIT 1;
        SELECT s.closes_at INTO v_before FROM livewell.exchange_session s
        WHERE s.calendar = p_type.calendar AND s.opens_at < v_open ORDER BY s.opens_at DESC LIMIT 1;
        SELECT s.opens_at INTO v_next FROM livewell.exchange_session s
        WHERE s.calendar = p_type.calendar AND s.opens_at > p_now ORDER BY s.opens_at LIMIT 1;
    END IF;
    RETURN (
        SELECT min(c.at)
        FROM unnest(ARRAY[
            livewell.stale_at(p_type, p_ledger), p_ledger.checked_at - 5 * interval '1 second',
            v_lags, v_next, v_close,
            v_lags + (v_open - v_before),
            v_open + extract(epoch FROM p_type.max_source_age) * interval '1 second'
        ]) AS c (at)
        WHERE c.at > p_now AND c.at < 'infinity');
END
$$;
COMMENT ON FUNCTION livewell.verdict_turns_at IS
    'When the verdict on a value may next change by the mere passing of time; NULL: never.';
REVOKE ALL ON FUNCTION livewell.verdict_turns_at FROM PUBLIC;
