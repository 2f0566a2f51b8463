-- Every worker, 1,000 at most: what it works, how many jobs it holds, and how its lease stands.
--
-- Called by: state_queue, with its planner settings. p_running: as count_running
--            answers.
-- Index:     worker_pkey.
CREATE OR REPLACE FUNCTION livewell.list_worker_states(p_running jsonb, p_now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_workers   jsonb;
BEGIN
    SELECT coalesce(
        jsonb_agg(
            jsonb_build_object(
                'id', w.id, 'name', w.name, 'version', w.version, 'queues', w.queues,
                'lacks', w.lacks, 'slots', w.slots, 'started_at', w.started_at,
                'holds', (
                    SELECT coalesce(sum((r ->> 2)::bigint), 0)
                    FROM jsonb_array_elements(p_running) AS r
                    WHERE (r ->> 1)::bigint = w.id
                ),
                'renewed_seconds', extract(epoch FROM p_now - w.renewed_at)::float8,
                'lease_left_seconds', extract(epoch FROM w.expires_at - p_now)::float8
            ) ORDER BY w.id
        ),
        '[]'
    )
    INTO v_workers FROM (SELECT * FROM livewell.worker o ORDER BY o.id LIMIT 1000) w;
    RETURN v_workers;
END
$$;
COMMENT ON FUNCTION livewell.list_worker_states IS
    'The workers of the system state, as a JSON array.';
REVOKE ALL ON FUNCTION livewell.list_worker_states FROM PUBLIC;
