-- Why a refresh of a key that is wanted is not demanded now: parked, paused, throttled, waiting (a
-- job is on its way), cold_budget. NULL: it may be demanded.
--
-- Called by: read_through, which explains these words, as the owner. p_ledger: the key's row; all
--            NULL if nobody ever asked for it, and then it is counted against the user's budget.
-- Index:     job_unique_key_idx; see read_throttle.
CREATE OR REPLACE FUNCTION livewell.refuse_demand(
    p_type livewell.data_type, p_ledger livewell.ledger, p_key text, p_queue text, p_user text,
    p_cold_max integer, p_now timestamptz)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF p_type.parked_reason IS NOT NULL THEN
        RETURN 'parked';
    ELSIF p_type.paused_at IS NOT NULL
          OR EXISTS (
              SELECT FROM livewell.upstream u
              WHERE u.name = p_type.upstream AND u.paused_at IS NOT NULL) THEN
        RETURN 'paused';
    ELSIF (
        SELECT h.reason IS NOT NULL
        FROM livewell.read_throttle(
            p_type.upstream, p_type.name, p_type.size_estimate, p_now) AS h) THEN
        -- Also where a job waits already: it does not come before the others.
        RETURN 'throttled';
    ELSIF p_ledger.demanded_at > p_now - interval '2 minutes'
          AND EXISTS (
              SELECT FROM livewell.job j
              WHERE j.queue = p_queue AND j.unique_key = p_type.name || ':' || p_key) THEN
        RETURN 'waiting';
    ELSIF p_ledger.key IS NULL AND p_user IS NOT NULL
          AND NOT livewell.spend_cold_read(p_user, p_cold_max) THEN
        RETURN 'cold_budget';
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION livewell.refuse_demand IS
    'Why a refresh that is wanted cannot be demanded now; NULL if it can.';
REVOKE ALL ON FUNCTION livewell.refuse_demand FROM PUBLIC;
