-- When this server began to serve: its start, or its promotion if that was later.
--
-- Called by: restart_wait. A function of its own so that tests can put another instant in its
--            place.
CREATE OR REPLACE FUNCTION livewell.server_started()
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT greatest(
        pg_catalog.pg_postmaster_start_time(),
        to_timestamp(pg_catalog.pg_sequence_last_value('livewell.promoted_seq') / 1000.0)
    )
$$;
COMMENT ON FUNCTION livewell.server_started IS 'When this server was started, or promoted.';
REVOKE ALL ON FUNCTION livewell.server_started FROM PUBLIC;
