-- Claim the next batch for a relay: its blocked keys that are due, then whatever is ready in its
-- shards, tenants in turns.
--
-- Called by: exchange_events, outbox_claim. The caller has locked the relay's row.
-- p_tenant:  only this tenant's; NULL: all.
-- Every number goes into the relay's flight before the batch leaves: that is the attempt, and the
-- fence. An event that was lost with two relays goes alone, so that it takes nobody with it.
CREATE OR REPLACE FUNCTION livewell.claim_events(
    p_relay livewell.relay, p_limit integer, p_tenant text
)
RETURNS SETOF livewell.relayed_event
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz;
    v_shards    smallint[];
    v_flight    livewell.event_flight;
    v_numbers   bigint[];
    v_days      date[];
    v_killer    bigint;
    v_ready     bigint[];
    v_mark      bigint := 0;
    v_took      interval;
    v_seconds   float8;
    -- Half of the batch is for blocked keys; of a batch of one, every second.
    v_half      integer := p_limit / 2 + (p_limit % 2 = 1 AND random() < 0.5)::integer;
BEGIN
    IF EXISTS (
        SELECT FROM livewell.event_sink s WHERE s.id = p_relay.sink AND s.paused_at IS NOT NULL
    )
    THEN
        RETURN;
    END IF;
    v_shards := ARRAY(
        SELECT h.shard FROM livewell.relay_shard h
        WHERE h.sink = p_relay.sink AND h.relay = p_relay.id ORDER BY h.shard
    );
    IF cardinality(v_shards) = 0 THEN
        RETURN;
    END IF;
    v_numbers := livewell.pick_blocked(p_relay.sink, v_shards, v_half, p_tenant);
    v_now := livewell.now();
    IF v_now < p_relay.mark_until AND p_relay.mark_shards = v_shards THEN
        v_mark := p_relay.mark;
    END IF;
    v_ready := livewell.pick_ready(
        p_relay, v_shards, p_limit - cardinality(v_numbers), p_tenant, v_mark
    );
    v_took := livewell.now() - v_now;
    v_seconds := extract(epoch FROM v_took);
    IF v_mark > 0 OR p_relay.mark_until IS NOT NULL OR v_seconds > 0.002 + 0.000006 * p_limit THEN
        PERFORM livewell.move_mark(p_relay, v_shards, v_mark, v_ready, v_seconds);
    END IF;
    v_numbers := v_numbers || v_ready;
    IF cardinality(v_numbers) = 0 AND v_half < p_limit THEN
        v_numbers := livewell.pick_blocked(p_relay.sink, v_shards, p_limit, p_tenant);
    END IF;
    IF cardinality(v_numbers) = 0 THEN
        RETURN;
    END IF;
    SELECT min(d.number) FILTER (WHERE d.lost >= 2), array_agg(DISTINCT d.day)
    INTO v_killer, v_days
    FROM livewell.event_delivery d
    WHERE d.sink = p_relay.sink AND d.number = ANY (v_numbers);
    IF v_killer IS NOT NULL THEN
        v_numbers := ARRAY[livewell.first_of_key(p_relay.sink, v_killer, v_numbers)];
    END IF;
    v_flight := livewell.lock_flight(p_relay.id);
    PERFORM livewell.set_flight(v_flight, v_now, v_flight.numbers || v_numbers);
    -- Nearly always all are of one day, and one partition is looked at. Days are not in the order
    -- of numbers where the clock went back over midnight.
    RETURN QUERY
    SELECT 'event', e.number, d.key_hash, e.created_at, e.topic::text, e.key::text, e.tenant::text,
        e.payload::text, e.trace, d.attempt::integer, d.replay
    FROM livewell.event e
    JOIN livewell.event_delivery d ON d.number = e.number AND d.sink = p_relay.sink
    WHERE e.day BETWEEN v_days[1] AND v_days[cardinality(v_days)] AND e.number = ANY (v_numbers)
    ORDER BY e.number;
END
$$;
COMMENT ON FUNCTION livewell.claim_events IS
    'Claims events for a relay from its shards: due keys first, then tenants in turns.';
REVOKE ALL ON FUNCTION livewell.claim_events FROM PUBLIC;
