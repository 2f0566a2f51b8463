-- One worker incarnation: its lease, what it works, how much it holds.
--
-- Called by: the page of a worker. No row: it has stopped, or was buried.
-- Index:     worker_pkey, job_worker_idx.
CREATE OR REPLACE FUNCTION livewell.show_worker(p_id bigint)
RETURNS TABLE (
    id bigint, name text, version text, queues text[], lacks text[], slots integer, holds bigint,
    started_at timestamptz, lease_seconds float8, renewed_seconds_ago float8,
    lease_left_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT w.id, w.name, w.version, w.queues, w.lacks, w.slots,
        (SELECT count(*) FROM livewell.job j WHERE j.state = 'running' AND j.worker = w.id),
        w.started_at, extract(epoch FROM w.lease)::float8,
        extract(epoch FROM v_now - w.renewed_at)::float8,
        extract(epoch FROM w.expires_at - v_now)::float8
    FROM livewell.worker w
    WHERE w.id = p_id;
END
$$;
COMMENT ON FUNCTION livewell.show_worker IS 'One worker, its lease and how much it holds.';
REVOKE ALL ON FUNCTION livewell.show_worker FROM PUBLIC;
