-- Claim events for a worker outside, in any language: the promises of a relay, without one.
--
-- Called by: programs of others: SELECT * FROM livewell.outbox_claim(100, token, NULL), then
--            outbox_mark_delivered(token, ids). For sinks that are declared `outside`.
-- p_token:   the worker's own, the same in all its calls. It is the lease: it is stored beside the
--            relay, and nobody else can finish what it holds.
-- p_tenant:  only this tenant's; NULL: all.
-- Oldest first (created_at, then id), disjoint between workers, in the order of each key: the same
-- shards and flights as our own relays have. With more waiting than p_limit, tenants take turns. A
-- worker takes free shards until it has p_limit events, and keeps a shard only while it holds an
-- event of it.
-- The lease is what p_limit events took lately at this sink, four times, and a minute at least and
-- a quarter of an hour at most. What is not marked by then goes to others.
CREATE OR REPLACE FUNCTION livewell.outbox_claim(
    p_limit integer, p_token uuid, p_tenant text DEFAULT NULL, p_sink text DEFAULT 'outbox'
)
RETURNS TABLE (
    id bigint, event_id text, topic text, tenant_id text, key text, payload json,
    created_at timestamptz, attempts integer, processing_token uuid
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz;
    v_relay livewell.relay;
    v_sink  smallint;
    v_lease interval;
BEGIN
    IF p_limit NOT BETWEEN 1 AND 5000 OR p_token IS NULL THEN
        RAISE EXCEPTION 'outbox_claim: limit %, token %: 1 to 5000 and a token are allowed',
            p_limit, p_token
            USING ERRCODE = 'LW003';
    END IF;
    SELECT s.id INTO v_sink FROM livewell.event_sink s WHERE s.name = p_sink AND s.outside;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'outbox_claim: there is no sink % that is claimed from outside; declare it '
            'with: livewell outbox sinks declare % --outside --topics ''*''', p_sink, p_sink
            USING ERRCODE = 'LW003';
    END IF;
    -- One claimer of a sink at a time, so that each sees what the others have taken.
    PERFORM pg_catalog.pg_advisory_xact_lock(hashtextextended('livewell.outbox_claim', v_sink));
    v_now := livewell.now();
    PERFORM livewell.bury_relays(v_sink, NULL);
    SELECT greatest(
            interval '1 minute',
            least(
                interval '15 minutes',
                4 * p_limit * coalesce(max(r.batch_seconds), 0) * interval '1 second'
            )
        )
    INTO v_lease
    FROM livewell.relay r WHERE r.sink = v_sink;
    v_lease := coalesce(v_lease, interval '1 minute');
    INSERT INTO livewell.relay AS r (
        id, sink, token, started_at, renewed_at, expires_at, steady_since, lease, name, version
    )
    VALUES (
        nextval('livewell.relay_id_seq'), v_sink, p_token, v_now, v_now, v_now + v_lease, v_now,
        v_lease, 'outside', ''
    )
    ON CONFLICT (sink, token) WHERE token IS NOT NULL DO UPDATE
    SET renewed_at = v_now, expires_at = v_now + v_lease, lease = v_lease
    RETURNING r.* INTO v_relay;
    -- What it still holds goes on, and is not given a second time.
    PERFORM livewell.finish_events(
        v_sink, v_relay.id, '{}', '{}', '{}', '{}', f.numbers
    )
    FROM livewell.event_flight f WHERE f.relay = v_relay.id;
    PERFORM livewell.take_oldest_shards(v_sink, v_relay.id, p_limit, p_tenant);
    RETURN QUERY
    SELECT e.number, livewell.event_id(e.number), e.topic, e.tenant, e.key, e.payload::json,
        e.created_at, e.attempt + 1, p_token
    FROM livewell.claim_events(v_relay, p_limit, p_tenant) e
    -- Oldest first, but never against the order of a key, whatever the clock did.
    ORDER BY max(e.created_at) OVER (PARTITION BY e.lane ORDER BY e.number), e.number;
    PERFORM livewell.free_idle_shards(v_sink, v_relay.id);
END
$$;
COMMENT ON FUNCTION livewell.outbox_claim IS
    'Claims events for a worker outside, oldest first, under its token.';
REVOKE ALL ON FUNCTION livewell.outbox_claim FROM PUBLIC;
