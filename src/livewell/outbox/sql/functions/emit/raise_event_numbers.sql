-- After a failover: raise the numbers of events above all that the old primary may have drawn.
--
-- Called by: emit_event, emit_events, emit_dated_event, when the timeline is not the one they know.
-- Without this, an event could get the number of one that was delivered before the failover and
-- lost with it; receivers would drop it as a duplicate. See docs/adr/0007.
-- Why SECURITY DEFINER: setval needs a right that would let a worker turn the numbers back.
CREATE OR REPLACE FUNCTION livewell.raise_event_numbers()
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_timeline bigint := (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'events are emitted on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    -- one raises; the others wait for it and find it done
    PERFORM pg_catalog.pg_advisory_xact_lock(7091317);
    IF pg_catalog.pg_sequence_last_value('livewell.event_timeline_seq') = v_timeline THEN
        RETURN false;
    END IF;
    IF pg_catalog.pg_sequence_last_value('livewell.event_timeline_seq') IS NOT NULL THEN
        PERFORM pg_catalog.setval(
            'livewell.event_number_seq', pg_catalog.nextval('livewell.event_number_seq') + 268435456
        );
        PERFORM pg_catalog.setval(
            'livewell.relay_id_seq', pg_catalog.nextval('livewell.relay_id_seq') + 16777216
        );
    END IF;
    -- last: whoever sees it may go on
    PERFORM pg_catalog.setval('livewell.event_timeline_seq', v_timeline);
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.raise_event_numbers IS
    'Raises the numbers of events and relays, once for each timeline.';
REVOKE ALL ON FUNCTION livewell.raise_event_numbers FROM PUBLIC;
