-- The heartbeat: renew the lease, set deadlines of handlers that have started, learn what to
-- cancel.
--
-- Called by: keeper, every heartbeat.
-- Index:     primary keys; job_cancel_idx; job_suspect_idx.
-- A late heartbeat is valid as long as the row exists: only burying ends a lease. A gap longer than
-- a third of the lease makes us unsteady, because then everybody else may have had the same gap (an
-- outage, a promotion), and nobody may be buried for it.
-- Why SKIP LOCKED on jobs: one that is being finished right now needs no deadline, and waiting for
-- it could deadlock with the finish.
CREATE OR REPLACE FUNCTION livewell.renew_worker(
    p_worker bigint, p_ids bigint[], p_fences bigint[], p_timeout_seconds float8[]
)
RETURNS TABLE (alive boolean, mark bigint, cancel bigint[], drain boolean)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_queues    text[];
    v_lease     interval;
    v_suspects  integer := 0;
    v_workers   integer;
    v_place     integer;
BEGIN
    PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT false, 0::bigint, '{}'::bigint[], false;
        RETURN;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.worker w
    SET renewed_at = v_now, expires_at = v_now + w.lease,
        steady_since = CASE
            WHEN v_now - w.renewed_at > w.lease / 3 THEN v_now
            ELSE w.steady_since
        END
    WHERE w.id = p_worker
    RETURNING w.queues, w.lease
    INTO v_queues, v_lease;

    IF cardinality(p_ids) > 0 THEN
        UPDATE livewell.job j
        SET deadline_at = v_now + t.seconds * interval '1 second'
        FROM unnest(p_ids, p_fences, p_timeout_seconds) AS t (id, fence, seconds)
        WHERE j.id = t.id
            AND j.fence = t.fence
            AND j.worker = p_worker
            AND j.id = ANY (
                ARRAY(
                    SELECT l.id FROM livewell.job l
                    WHERE l.id = ANY (p_ids)
                    ORDER BY l.id FOR UPDATE SKIP LOCKED
                )
            );
    END IF;

    -- Suspects need an empty worker. Of the workers, as many take a turn at draining as there are
    -- suspects, at most half; the turn moves on every lease.
    SELECT count(*) INTO v_suspects
    FROM unnest(v_queues) AS q (name)
    -- nobody drains for what may not run
    JOIN livewell.queue o ON o.name = q.name AND o.paused_at IS NULL
    CROSS JOIN LATERAL (
        SELECT FROM livewell.job j
        WHERE j.queue = q.name AND j.state = 'ready' AND j.lost > 0
        LIMIT 50
    ) s;
    IF v_suspects > 0 THEN
        SELECT count(*), count(*) FILTER (WHERE w.id < p_worker) INTO v_workers, v_place
        FROM livewell.worker w
        WHERE w.queues && v_queues;
    END IF;

    RETURN QUERY
    SELECT true,
        -- The end of the newest block of fences. A sequence never used shows its first number, not
        -- the one before: the first claim may be in flight.
        (
            SELECT CASE WHEN s.is_called THEN s.last_value + 16383 ELSE 0 END
            FROM livewell.fence_seq s
        ),
        ARRAY(SELECT j.fence FROM livewell.job j WHERE j.worker = p_worker AND j.cancel_requested),
        v_suspects > 0
            AND (
                v_place + (extract(epoch FROM v_now) / extract(epoch FROM v_lease))::bigint
            ) % v_workers < least(v_suspects, greatest(v_workers / 2, 1));
END
$$;
COMMENT ON FUNCTION livewell.renew_worker IS
    'Renews a lease; answers whether it still exists, the newest fence, the fences to cancel, and '
    'whether to drain for suspects.';
REVOKE ALL ON FUNCTION livewell.renew_worker FROM PUBLIC;
