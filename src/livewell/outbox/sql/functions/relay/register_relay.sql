-- Start a relay of one sink: its row is its lease.
--
-- Called by: Relay, at its start and whenever it finds its row gone.
-- Answer:    its id; NULL if there is no such sink, or outsiders claim its events.
CREATE OR REPLACE FUNCTION livewell.register_relay(
    p_sink text, p_name text, p_version text, p_lease_seconds float8
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_sink  smallint;
    v_id    bigint;
    v_lease interval := p_lease_seconds * interval '1 second';
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'relays register on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    SELECT s.id INTO v_sink FROM livewell.event_sink s WHERE s.name = p_sink AND NOT s.outside;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_id := nextval('livewell.relay_id_seq');
    INSERT INTO livewell.relay (
        id, sink, started_at, renewed_at, expires_at, steady_since, lease, name, version
    )
    VALUES (
        v_id, v_sink, v_now, v_now, v_now + v_lease, v_now, v_lease, left(p_name, 200),
        left(p_version, 50)
    );
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION livewell.register_relay IS
    'Creates the lease of a new relay and answers its id, or NULL if there is no such sink.';
REVOKE ALL ON FUNCTION livewell.register_relay FROM PUBLIC;
