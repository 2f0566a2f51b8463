-- Start a new worker incarnation: its row is its lease.
--
-- Called by: worker, at start and whenever it finds its row gone.
CREATE OR REPLACE FUNCTION livewell.register_worker(
    p_name text,
    p_version text,
    p_queues text[],
    p_kinds text[],
    p_slots integer,
    p_lease_seconds float8
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_id    bigint;
    v_lease interval := p_lease_seconds * interval '1 second';
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'workers register on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    v_id := nextval('livewell.worker_id_seq');
    INSERT INTO livewell.worker (
        id, started_at, renewed_at, expires_at, steady_since, lease, slots, queues, kinds, name,
        version
    )
    VALUES (
        v_id, v_now, v_now, v_now + v_lease, v_now, v_lease, p_slots, p_queues, p_kinds,
        left(p_name, 200), left(p_version, 50)
    );
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION livewell.register_worker IS
    'Creates the lease row of a new worker incarnation and returns its id.';
REVOKE ALL ON FUNCTION livewell.register_worker FROM PUBLIC;
