-- The heartbeat of a relay: renew the lease, say how the sink is, bury the dead, take a fair share
-- of the shards.
--
-- Called by: Relay, every third of its lease.
-- p_batch_seconds: what a batch takes at the sink now; the lease is four times that, and
--            p_lease_seconds at least. A heartbeat of another thread of work renews it also while a
--            batch takes longer.
-- p_away:    why the sink takes nothing now; NULL if it does.
-- A late heartbeat is valid as long as the row exists: only burying ends a lease. A gap longer than
-- half of the lease makes us unsteady: everybody else may have had it too (an outage), and
-- nobody may be buried for it.
CREATE OR REPLACE FUNCTION livewell.renew_relay(
    p_relay bigint, p_lease_seconds float8, p_batch_seconds float8, p_away text
)
RETURNS TABLE (alive boolean, shards integer, paused boolean, batch_max integer)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz;
    v_sink  smallint;
    v_lease interval := greatest(p_lease_seconds, 4 * coalesce(p_batch_seconds, 0))
        * interval '1 second';
BEGIN
    PERFORM FROM livewell.relay r WHERE r.id = p_relay FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT false, 0, false, 0;
        RETURN;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.relay r
    SET renewed_at = v_now, lease = v_lease, expires_at = v_now + v_lease,
        steady_since = CASE
            WHEN v_now - r.renewed_at > r.lease / 2 THEN v_now ELSE r.steady_since
        END,
        batch_seconds = p_batch_seconds, away_reason = left(p_away, 500),
        away_since = CASE WHEN p_away IS NOT NULL THEN coalesce(r.away_since, v_now) END
    WHERE r.id = p_relay
    RETURNING r.sink INTO v_sink;
    PERFORM livewell.bury_relays(v_sink, p_relay);
    PERFORM livewell.balance_shards(v_sink, p_relay);
    RETURN QUERY
    SELECT true,
        (SELECT count(*)::integer FROM livewell.relay_shard h WHERE h.relay = p_relay),
        s.paused_at IS NOT NULL, s.batch_max::integer
    FROM livewell.event_sink s WHERE s.id = v_sink;
END
$$;
COMMENT ON FUNCTION livewell.renew_relay IS
    'Renews a relay''s lease and shares the shards; answers whether it lives and what it has.';
REVOKE ALL ON FUNCTION livewell.renew_relay FROM PUBLIC;
