-- When a key is to be looked at again: when its value goes stale, but not before retry_at, and
-- never in the past.
--
-- Called by: set_ttl; move_ledger, unpark, ready_keys and redue_type, for due_at of a key that
--            somebody watches; whether somebody does is theirs to know.
-- Why never in the past: due_at is where waiting is counted from, and a key that nobody watched has
-- not been waiting.
CREATE OR REPLACE FUNCTION livewell.next_due(
    p_type livewell.data_type, p_ledger livewell.ledger, p_now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN greatest(p_now, p_ledger.retry_at, livewell.stale_at(p_type, p_ledger));
END
$$;
COMMENT ON FUNCTION livewell.next_due IS
    'When a key is due: stale by its rule, retry_at passed, not before p_now.';
REVOKE ALL ON FUNCTION livewell.next_due FROM PUBLIC;
