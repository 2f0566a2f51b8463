-- Emit an event that says when it was made: what a view of an older outbox does for its inserts.
--
-- Called by: the view of docs/howto/from_the_old_outbox.md. New programs call emit_event.
-- As emit_event, without a key and without a trace. Only the time that receivers see is the given
-- one: the event is kept with those of today, and its place is that of its emission.
CREATE OR REPLACE FUNCTION livewell.emit_dated_event(
    p_topic text, p_payload json, p_tenant text, p_created_at timestamptz
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_writer    xid8;
    v_number    bigint;
    v_day       date;
    v_tenant    text := coalesce(p_tenant, '');
BEGIN
    PERFORM livewell.refuse_event(p_topic, p_payload, NULL, v_tenant, NULL);
    IF pg_catalog.pg_sequence_last_value('livewell.event_timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_event_numbers();    -- a failover
    END IF;
    v_now := livewell.now();
    v_day := (v_now AT TIME ZONE 'UTC')::date;
    v_writer := pg_current_xact_id();       -- before the number is drawn: move_mark
    v_number := nextval('livewell.event_number_seq');
    INSERT INTO livewell.event (number, created_at, day, topic, tenant, payload)
    VALUES (v_number, coalesce(p_created_at, v_now), v_day, p_topic, v_tenant, p_payload);
    INSERT INTO livewell.event_delivery (number, key_hash, day, tenant_hash, sink, shard)
    SELECT v_number, v_number, v_day, hashtext(v_tenant), r.sink, v_number & 63
    FROM livewell.event_route r WHERE r.topic = p_topic;
    RETURN v_number;
END
$$;
COMMENT ON FUNCTION livewell.emit_dated_event IS
    'Emits an event without a key that says when it was made; answers its number.';
REVOKE ALL ON FUNCTION livewell.emit_dated_event FROM PUBLIC;
