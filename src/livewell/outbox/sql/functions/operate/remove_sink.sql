-- Remove a sink, in pages: nothing is routed to it any more, then its deliveries and dead letters go,
-- then the sink itself.
--
-- Called by: OutboxAdmin.remove_sink, until it answers neither more nor NULL.
-- p_force:   false: refuse while events wait for it or are dead letters.
-- Answer:    removed; more: call again; waiting: refused; NULL: there is no such sink.
-- A transaction that had emitted before the routes went may still add a delivery: prune_outbox drops
-- what belongs to no sink.
CREATE OR REPLACE FUNCTION livewell.remove_sink(p_sink text, p_force boolean, p_n integer)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz;
    v_sink  smallint;
    v_n     bigint;
BEGIN
    SELECT s.id INTO v_sink FROM livewell.event_sink s WHERE s.name = p_sink FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_now := livewell.now();
    IF NOT p_force
        AND (
            EXISTS (SELECT FROM livewell.event_delivery d WHERE d.sink = v_sink AND NOT d.aside)
            OR EXISTS (SELECT FROM livewell.event_delivery d WHERE d.sink = v_sink AND d.aside)
            OR EXISTS (SELECT FROM livewell.dead_event d WHERE d.sink = v_sink)
        )
    THEN
        RETURN 'waiting';
    END IF;
    UPDATE livewell.event_sink s
    SET paused_at = coalesce(s.paused_at, v_now) WHERE s.id = v_sink;
    DELETE FROM livewell.event_route r WHERE r.sink = v_sink;
    v_n := livewell.drop_deliveries(v_sink, p_n);
    DELETE FROM livewell.dead_event d
    WHERE d.sink = v_sink
        AND d.number = ANY (
            ARRAY(
                SELECT o.number FROM livewell.dead_event o
                WHERE o.sink = v_sink ORDER BY o.topic, o.reason, o.number
                LIMIT greatest(p_n - v_n, 0)
            )
        );
    IF v_n >= p_n OR EXISTS (SELECT FROM livewell.dead_event d WHERE d.sink = v_sink) THEN
        RETURN 'more';
    END IF;
    DELETE FROM livewell.event_flight f
    WHERE f.relay IN (SELECT r.id FROM livewell.relay r WHERE r.sink = v_sink);
    DELETE FROM livewell.relay r WHERE r.sink = v_sink;
    DELETE FROM livewell.relay_shard h WHERE h.sink = v_sink;
    DELETE FROM livewell.event_block b WHERE b.sink = v_sink;
    UPDATE livewell.event_replay y
    SET state = 'cancelled', ended_at = v_now WHERE y.sink = v_sink AND y.state = 'running';
    DELETE FROM livewell.event_sink s WHERE s.id = v_sink;
    RETURN 'removed';
END
$$;
COMMENT ON FUNCTION livewell.remove_sink IS
    'Removes a sink with what waits for it, in pages; refuses while something waits unless forced.';
REVOKE ALL ON FUNCTION livewell.remove_sink FROM PUBLIC;
