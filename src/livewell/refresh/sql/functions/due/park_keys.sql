-- Park keys that nobody watches and nobody waits for: due_at becomes NULL, and costs nothing until
-- somebody comes.
--
-- Called by: park_unwatched, for keys that had no viewers. Index: ledger_pkey,
--            subscription_key_idx, viewer_session_pkey.
-- Lock first, count in the next statement (race-tested: otherwise a watched key sleeps for ever).
-- FOR UPDATE, the only lock that a subscriber's KEY SHARE conflicts with: who subscribes now waits
-- for us and then sees the key parked; whose subscription is not committed yet makes us skip the
-- row; who committed before our lock is counted.
CREATE OR REPLACE FUNCTION livewell.park_keys(p_types text[], p_keys text[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_since     timestamptz := p_now - interval '5 minutes';
    v_types     text[];
    v_keys      text[];
    v_parked    integer;
BEGIN
    SELECT array_agg(x.data_type), array_agg(x.key) INTO v_types, v_keys FROM (
        SELECT l.data_type, l.key FROM unnest(p_types, p_keys) AS g (name, key)
        JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
        WHERE l.due_at <= p_now FOR UPDATE OF l SKIP LOCKED) x;
    UPDATE livewell.ledger l SET due_at = NULL, demand_class = 1       -- whoever comes is one
    FROM unnest(v_types, v_keys) AS g (name, key)
    WHERE l.data_type = g.name AND l.key = g.key
      AND NOT (
          coalesce(l.demanded_at > p_now - interval '1 minute', false)
              AND coalesce(l.checked_at < l.demanded_at, true))
      AND NOT EXISTS (
          SELECT FROM livewell.subscription b
          JOIN livewell.viewer_session v ON v.id = b.session_id
          WHERE b.data_type = g.name AND b.key = g.key AND v.seen_at > v_since);
    GET DIAGNOSTICS v_parked = ROW_COUNT;
    RETURN v_parked;
END
$$;
COMMENT ON FUNCTION livewell.park_keys IS
    'Parks those of the given due keys that nobody watches; answers how many.';
REVOKE ALL ON FUNCTION livewell.park_keys FROM PUBLIC;
