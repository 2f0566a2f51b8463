-- Every worker incarnation with its lease and how many jobs it holds.
--
-- Called by: CLI `queues workers`.
-- Index:     job_worker_idx.
CREATE OR REPLACE FUNCTION livewell.list_workers()
RETURNS TABLE (
    id bigint, name text, version text, queues text[], slots integer, holds bigint,
    started_at timestamptz, renewed_seconds_ago float8, lease_left_seconds float8
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT w.id, w.name, w.version, w.queues, w.slots,
        (SELECT count(*) FROM livewell.job j WHERE j.state = 'running' AND j.worker = w.id),
        w.started_at, extract(epoch FROM v_now - w.renewed_at)::float8,
        extract(epoch FROM w.expires_at - v_now)::float8
    FROM livewell.worker w
    ORDER BY w.id LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_workers IS 'Workers, their leases and how much they hold.';
REVOKE ALL ON FUNCTION livewell.list_workers FROM PUBLIC;
