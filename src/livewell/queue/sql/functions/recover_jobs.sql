-- Take back the jobs of workers whose lease has run out, and jobs past their own deadline.
--
-- Called by: maintain(), every second, by any worker.
-- Index:     job_worker_idx (as a skip scan: one probe per distinct holder), job_deadline_idx.
-- Why SKIP LOCKED: a row that is being finished right now is not stuck; waiting for it would deadlock with finish_jobs.
-- Why two statements: the first buries (deletes) expired workers; only a new snapshot then sees every claim they committed.
-- Only a steady caller buries: one that has itself renewed without a gap, up to now, for a whole lease (its own and the other's). After an outage everybody
-- is late, and nobody is dead. "Up to now": who wakes just before its lease ends has not yet noticed the gap that made the others late.
CREATE OR REPLACE FUNCTION livewell.recover_jobs(p_worker bigint, p_limit integer, p_grace_seconds float8)
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
    WHERE w.id = p_worker AND v_now - w.renewed_at <= w.lease / 3 AND v_now - w.steady_since >= w.lease;
    IF FOUND THEN
        DELETE FROM livewell.worker w
        WHERE w.id = ANY (ARRAY(SELECT d.id FROM livewell.worker d WHERE d.expires_at < v_now AND d.lease <= v_steady ORDER BY d.id FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS v_buried = ROW_COUNT;
    END IF;

    WITH RECURSIVE holder AS (
        (SELECT j.worker FROM livewell.job j WHERE j.state = 'running' ORDER BY j.worker LIMIT 1)
        UNION ALL
        SELECT (SELECT j.worker FROM livewell.job j WHERE j.state = 'running' AND j.worker > h.worker ORDER BY j.worker LIMIT 1)
        FROM holder h WHERE h.worker IS NOT NULL
    ), dead AS (
        SELECT h.worker FROM holder h WHERE h.worker IS NOT NULL AND NOT EXISTS (SELECT FROM livewell.worker w WHERE w.id = h.worker)
    )
    -- Bounded: after an outage a million rows must not be one transaction.
    SELECT array_agg(x.id) INTO v_lost FROM (
        SELECT j.id FROM livewell.job j WHERE j.state = 'running' AND j.worker = ANY (ARRAY(SELECT d.worker FROM dead d))
        ORDER BY j.worker LIMIT p_limit FOR UPDATE SKIP LOCKED) x;
    v_n := coalesce(cardinality(v_lost), 0);
    IF v_n > 0 THEN
        PERFORM livewell.settle_jobs(v_lost, array_fill('lost'::text, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]),
                                     array_fill('its worker died or froze while holding it'::text, ARRAY[v_n]), array_fill(NULL::float8, ARRAY[v_n]));
    END IF;

    v_overdue := ARRAY(
        SELECT j.id FROM livewell.job j WHERE j.deadline_at < v_now - p_grace_seconds * interval '1 second'
        ORDER BY j.deadline_at LIMIT p_limit FOR UPDATE SKIP LOCKED);
    IF cardinality(v_overdue) > 0 THEN
        PERFORM livewell.settle_jobs(v_overdue, array_fill('retry'::text, ARRAY[cardinality(v_overdue)]), array_fill(NULL::text, ARRAY[cardinality(v_overdue)]),
                                     array_fill('ran past its deadline and did not stop'::text, ARRAY[cardinality(v_overdue)]),
                                     array_fill(NULL::float8, ARRAY[cardinality(v_overdue)]));
    END IF;
    RETURN QUERY SELECT v_buried, v_n, cardinality(v_overdue);
END
$$;
COMMENT ON FUNCTION livewell.recover_jobs IS 'Buries expired workers and takes back the running jobs of buried ones and those past their deadline.';
REVOKE ALL ON FUNCTION livewell.recover_jobs FROM PUBLIC;
