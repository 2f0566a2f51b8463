-- Reserve blocks of 64 job ids; the caller owns first … first + 63 of each.
--
-- Called by: insert_export_batch, insert_exports, refresh_jobs; clients, once per 64 enqueues; outside any transaction, so a retry after
--            an unknown commit can name the same id.
CREATE OR REPLACE FUNCTION livewell.reserve_job_ids(p_blocks integer)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    RETURN QUERY
    SELECT nextval('livewell.job_id_seq')
    FROM generate_series(1, least(greatest(p_blocks, 1), 2000));
END
$$;
COMMENT ON FUNCTION livewell.reserve_job_ids IS
    'Gives the first id of each of n blocks of 64 job ids.';
REVOKE ALL ON FUNCTION livewell.reserve_job_ids FROM PUBLIC;
