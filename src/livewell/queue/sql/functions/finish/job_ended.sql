-- Jobs have left the live table: let the next with their key or group go on, count their batches,
-- charge what nobody charged.
--
-- Called by: trigger job_ended, after every DELETE on livewell.job, however it came about.
-- Locks, in this order everywhere: job rows, limiter rows by name, batch rows by id. Held rows are
-- taken with SKIP LOCKED and never waited for; what is missed because it was not committed yet,
-- promote_held finds within a second or so.
CREATE OR REPLACE FUNCTION livewell.job_ended()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_batches   bigint[];
BEGIN
    PERFORM FROM gone g
    WHERE g.unique_key IS NOT NULL
        OR g.group_key IS NOT NULL
        OR g.batch_id IS NOT NULL
        OR g.credential IS NOT NULL
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM livewell.charge_jobs(
        array_agg(g.queue ORDER BY g.id), array_agg(g.credential ORDER BY g.id),
        array_agg(g.fence ORDER BY g.id), array_agg(g.kind ORDER BY g.id),
        array_agg(g.reserved_units ORDER BY g.id)
    )
    FROM gone g
    WHERE g.credential IS NOT NULL
        AND NOT EXISTS (SELECT FROM livewell.usage_settled s WHERE s.fence = g.fence)
    HAVING count(*) > 0;
    PERFORM livewell.release_held(
        array_agg(g.queue),
        array_agg(CASE WHEN g.held_by IS DISTINCT FROM 'k' THEN g.unique_key END),
        array_agg(CASE WHEN g.state IN ('ready', 'running') THEN g.group_key END)
    )
    FROM gone g
    WHERE g.unique_key IS NOT NULL OR g.group_key IS NOT NULL
    HAVING count(*) > 0;

    v_batches := ARRAY(
        SELECT DISTINCT g.batch_id FROM gone g WHERE g.batch_id IS NOT NULL ORDER BY g.batch_id
    );
    IF cardinality(v_batches) > 0 THEN
        -- In a statement of its own, in order, before anything is counted.
        PERFORM FROM livewell.batch b WHERE b.id = ANY (v_batches) ORDER BY b.id FOR NO KEY UPDATE;
        -- Where a job went is already written: settle_jobs and finish_jobs insert before or with
        -- the delete, in this transaction.
        UPDATE livewell.batch b
        SET remaining = b.remaining - n.ended, failed = b.failed + n.failed,
            cancelled = b.cancelled + n.cancelled,
            succeeded = b.succeeded + n.ended - n.failed - n.cancelled
        FROM (
            SELECT g.batch_id, count(*) AS ended,
                count(*) FILTER (
                    WHERE EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = g.id)
                ) AS failed,
                count(*) FILTER (
                    WHERE EXISTS (
                        SELECT FROM livewell.job_history h
                        WHERE h.id = g.id AND h.fence = g.fence AND h.outcome = 'cancelled'
                    )
                ) AS cancelled
            FROM gone g
            WHERE g.batch_id IS NOT NULL
            GROUP BY g.batch_id
        ) n
        WHERE b.id = n.batch_id;
        PERFORM livewell.end_batches(v_batches);
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION livewell.job_ended IS
    'Releases what was held behind ended jobs, counts their batches and charges their limiters.';
REVOKE ALL ON FUNCTION livewell.job_ended FROM PUBLIC;
