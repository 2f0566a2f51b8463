-- Jobs as merge_jobs wants them, from the JSON array that enqueue_jobs explains: with when each is
-- due, its rank and its attempts, in the order of queues and keys.
--
-- Called by: merge_jobs. insert_jobs reads the array itself, in the statement that inserts.
CREATE OR REPLACE FUNCTION livewell.given_jobs(p_jobs jsonb, p_now timestamptz)
RETURNS TABLE (
    id bigint, queue text, kind text, payload jsonb, unique_key text, policy text, group_key text,
    call_key text, lane integer, priority integer, max_attempts integer, trace text,
    batch_id bigint, units bigint, due_at timestamptz, rank bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT g.id, g.queue, g.kind, g.payload, g.unique_key, g.policy, g.group_key, g.call_key,
        coalesce(g.lane, 1), coalesce(g.priority, 0), coalesce(g.max_attempts, q.attempts)::integer,
        g.trace, g.batch_id, g.units, d.due_at,
        (extract(epoch FROM greatest(d.due_at, p_now)) * 1000)::bigint
            - coalesce(g.priority, 0) * 60000
    FROM jsonb_to_recordset(p_jobs) AS g (
        id bigint, queue pg_catalog.text, kind pg_catalog.text, payload pg_catalog.jsonb,
        unique_key pg_catalog.text, policy pg_catalog.text, group_key pg_catalog.text,
        call_key pg_catalog.text, lane smallint, priority smallint,
        delay_seconds pg_catalog.float8, run_at pg_catalog.timestamptz, max_attempts smallint,
        trace pg_catalog.text, batch_id bigint, units bigint
    )
    JOIN livewell.queue q ON q.name = g.queue
    CROSS JOIN LATERAL (
        SELECT coalesce(g.run_at, p_now + g.delay_seconds * interval '1 second', p_now) AS due_at
    ) d
    ORDER BY g.queue, g.unique_key, g.id;
END
$$;
COMMENT ON FUNCTION livewell.given_jobs IS
    'New jobs with when they are due, their rank and their attempts, in the order of their keys.';
REVOKE ALL ON FUNCTION livewell.given_jobs FROM PUBLIC;
