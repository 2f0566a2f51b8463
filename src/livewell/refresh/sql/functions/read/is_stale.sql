-- Whether a value is stale by its rule at this instant. No value is stale.
--
-- Called by: judge_keys, ready_keys, refresh_wanted, rule_type_silent, why_key; subscribe, get;
--            whoever asks "is a refresh wanted?". verdict says more.
-- A check in the future: the clock was set back since. Nobody knows how old the value is, so it is
-- stale (fail safe, F-C3). Five seconds, because p_now may have been read a moment before the row.
CREATE OR REPLACE FUNCTION livewell.is_stale(
    p_type livewell.data_type, p_ledger livewell.ledger, p_now timestamptz)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN livewell.stale_at(p_type, p_ledger) <= p_now
        OR coalesce(p_ledger.checked_at > p_now + 5 * interval '1 second', false);
END
$$;
COMMENT ON FUNCTION livewell.is_stale IS
    'Whether a value is stale by its rule at p_now; no value counts as stale.';
REVOKE ALL ON FUNCTION livewell.is_stale FROM PUBLIC;
