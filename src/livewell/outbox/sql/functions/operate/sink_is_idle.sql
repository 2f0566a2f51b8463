-- True if nothing of a sink could be delivered now: nothing is ready, no key is due, nothing is on
-- its way.
--
-- Called by: `livewell outbox drain`.
-- Index:     event_delivery_ready_idx, event_block_due_idx, relay_sink_idx.
CREATE OR REPLACE FUNCTION livewell.sink_is_idle(p_sink text)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_sink  smallint;
BEGIN
    SELECT s.id INTO v_sink FROM livewell.event_sink s WHERE s.name = p_sink AND s.paused_at IS NULL;
    RETURN NOT FOUND OR NOT (
        EXISTS (SELECT FROM livewell.event_delivery d WHERE d.sink = v_sink AND NOT d.aside)
        OR EXISTS (SELECT FROM livewell.event_block b WHERE b.sink = v_sink AND b.retry_at <= v_now)
        OR EXISTS (
            SELECT FROM livewell.relay r
            JOIN livewell.event_flight f ON f.relay = r.id
            WHERE r.sink = v_sink AND r.expires_at > v_now AND cardinality(f.numbers) > 0
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.sink_is_idle IS
    'True if nothing of a sink could be delivered now.';
REVOKE ALL ON FUNCTION livewell.sink_is_idle FROM PUBLIC;
