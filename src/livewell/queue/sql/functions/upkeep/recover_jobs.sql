-- Take back the jobs of workers whose lease has run out, and jobs past their own deadline.
--
-- Called by: maintain(), every second, by any worker.
-- Index:     job_worker_idx (one probe between any two living workers), job_deadline_idx.
-- Why SKIP LOCKED: a row that is being finished right now is not stuck; waiting for it would
-- deadlock with finish_jobs.
-- Why two statements: the first buries (deletes) expired workers; only a new snapshot then sees
-- every claim they committed.
-- Only a steady caller buries: one that has itself renewed without a gap, up to now, for a whole
-- lease (its own and the other's). After an outage everybody is late, and nobody is dead. "Up to
-- now": who wakes just before its lease ends has not yet noticed the gap that made the others late.
CREATE OR REPLACE FUNCTION livewell.recover_jobs(
    p_worker bigint, p_limit integer, p_grace_seconds float8
)
RETURNS TABLE (buried integer, lost integer, overdue integer)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_steady    interval;
    v_buried    integer := 0;
    v_lost      bigint[];
    v_overdue   bigint[];
    v_n         integer;
BEGIN
    SELECT v_now - w.steady_since INTO v_steady FROM livewell.worker w
    WHERE w.id = p_worker
        AND v_now - w.renewed_at <= w.lease / 3
        AND v_now - w.steady_since >= w.lease;
    IF FOUND THEN
        DELETE FROM livewell.worker w
        WHERE w.id = ANY (
            ARRAY(
                SELECT d.id FROM livewell.worker d
                WHERE d.expires_at < v_now AND d.lease <= v_steady
                ORDER BY d.id FOR UPDATE SKIP LOCKED
            )
        );
        GET DIAGNOSTICS v_buried = ROW_COUNT;
    END IF;

    -- Only between the numbers of living workers: what those have run and finished is still in the
    -- index while somebody holds an old snapshot, and reading past it took half a second of every
    -- second.
    WITH gap AS (
        SELECT coalesce(lag(w.id) OVER (ORDER BY w.id), 0) AS below, w.id AS above
        FROM livewell.worker w
        UNION ALL
        SELECT coalesce(max(w.id), 0), 9223372036854775807 FROM livewell.worker w
    )
    -- Bounded: after an outage a million rows must not be one transaction.
    SELECT array_agg(x.id) INTO v_lost
    FROM (
        SELECT d.id
        FROM gap g
        CROSS JOIN LATERAL (
            SELECT j.id FROM livewell.job j
            WHERE j.state = 'running' AND j.worker > g.below AND j.worker < g.above
            ORDER BY j.worker LIMIT p_limit FOR UPDATE SKIP LOCKED
        ) d
        LIMIT p_limit
    ) x;
    -- One that was claimed anew while we looked, by a worker younger than our look, is locked too:
    -- it is not lost.
    v_lost := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.id = ANY (v_lost)
            AND NOT EXISTS (SELECT FROM livewell.worker w WHERE w.id = j.worker)
    );
    v_n := coalesce(cardinality(v_lost), 0);
    IF v_n > 0 THEN
        PERFORM livewell.settle_jobs(
            v_lost, array_fill('lost'::text, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]),
            array_fill('its worker died or froze while holding it'::text, ARRAY[v_n]),
            array_fill(NULL::float8, ARRAY[v_n])
        );
    END IF;

    v_overdue := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.deadline_at < v_now - p_grace_seconds * interval '1 second'
        ORDER BY j.deadline_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    );
    IF cardinality(v_overdue) > 0 THEN
        PERFORM livewell.settle_jobs(
            v_overdue, array_fill('retry'::text, ARRAY[cardinality(v_overdue)]),
            array_fill(NULL::text, ARRAY[cardinality(v_overdue)]),
            array_fill(
                'ran past its deadline and did not stop'::text, ARRAY[cardinality(v_overdue)]
            ),
            array_fill(NULL::float8, ARRAY[cardinality(v_overdue)])
        );
    END IF;
    RETURN QUERY SELECT v_buried, v_n, cardinality(v_overdue);
END
$$;
COMMENT ON FUNCTION livewell.recover_jobs IS
    'Buries expired workers and takes back the running jobs of buried ones and those past their '
    'deadline.';
REVOKE ALL ON FUNCTION livewell.recover_jobs FROM PUBLIC;
