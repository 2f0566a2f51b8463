-- What the refresh of a stale key waits for: its job, somebody who looks, or the due check.
--
-- Called by: why_key, for a key whose refresh nobody has stopped and that is not backed off.
-- Index:     job_unique_key_idx; ledger_due_idx, a bounded page of it.
-- Reasons:
--     running, delayed, held_key, held_group, paused_queue, no_worker, no_task, no_credential,
--     suspect, queue_limit, concurrency, key_limit, rate, budget, breaker, probe, upstream, behind,
--     next
--         it has a job: what why_job says of that
--     not_watched, scheduled
--         no job, and nobody to make one for: parked until somebody looks, or until the next walk
--     stalled, later, due
--         no job yet: its queue does not move; not looked at before its time; waits its turn among
--         n
--     no_worker, paused_queue, rate, budget, breaker, probe, upstream, behind
--         and without a job too: what keeps the due check from making one
CREATE OR REPLACE FUNCTION livewell.why_refresh(
    p_type livewell.data_type, p_ledger livewell.ledger, p_viewers integer, p_now timestamptz)
RETURNS TABLE (
    reason text, job_id bigint, lane integer, n bigint, of_limit bigint, other_id bigint, name text,
    since timestamptz, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_due_max   CONSTANT integer := 10000;
    v_name      text := p_type."name";
    v_key       text := p_ledger."key";
    v_queue     text := livewell.refresh_queue(p_type.upstream, p_type.pool);
    v_paused    timestamp with time zone;   -- since when its queue is
    v_demanded  boolean;                    -- somebody waits for it by read-through
    v_room      record;
BEGIN
    RETURN QUERY
    SELECT CASE w.reason WHEN 'paused' THEN 'paused_queue' ELSE w.reason END, j.id, j.lane::integer,
           w.n, w.of_limit, w.other_id, w.name, w.since, w.wait_seconds
    FROM livewell.job j CROSS JOIN LATERAL livewell.why_job(j.id) AS w
    WHERE j.queue = v_queue AND j.unique_key = v_name || ':' || v_key
      AND j.held_by IS DISTINCT FROM 'k'
      AND w.reason NOT IN ('succeeded', 'cancelled', 'dead', 'unknown')
    LIMIT 1;
    IF FOUND THEN
        RETURN;
    END IF;

    -- It has none. Is there anybody to make one for?
    v_demanded := coalesce(p_ledger.demanded_at > p_now - interval '1 minute', false)
        AND coalesce(p_ledger.checked_at < p_ledger.demanded_at, true);
    lane := CASE WHEN p_type.strategy = 'scheduled' OR p_viewers = 0 AND NOT v_demanded
        THEN 1 ELSE 0 END;
    IF p_viewers = 0 AND NOT v_demanded
       AND NOT (
           p_type.prefetch AND coalesce(p_ledger.wanted_at > p_now - interval '1 day', false)) THEN
        IF p_type.strategy = 'scheduled' AND EXISTS (
            SELECT FROM livewell.universe u
            WHERE u.data_type = v_name AND u.key = v_key AND u.active) THEN
            reason := 'scheduled';
            since := (
                SELECT s.due_at FROM livewell.schedule s
                WHERE s.name = 'walk.' || p_type.name AND s.open_ended);
        ELSE
            reason := 'not_watched';
        END IF;
        RETURN NEXT;
        RETURN;
    END IF;
    name := v_queue;
    SELECT q.paused_at INTO v_paused FROM livewell.queue q WHERE q.name = v_queue;
    IF v_paused IS NOT NULL THEN
        reason := 'paused_queue';
        since := v_paused;
        RETURN NEXT;
        RETURN;
    END IF;
    IF NOT EXISTS (
        SELECT FROM livewell.worker w
        WHERE livewell.works_queue(w.queues, v_queue) AND w.expires_at > p_now) THEN
        reason := 'no_worker';
        RETURN NEXT;
        RETURN;
    END IF;

    -- There is. What keeps the due check from making one?
    -- What stops the whole upstream comes before what its queue does: jobs that wait for an open
    -- breaker do not move either.
    SELECT r.* INTO v_room FROM livewell.dispatch_room(p_type.upstream, p_now, 1000) AS r;
    IF v_queue = ANY (v_room.stalled)
       AND coalesce(v_room.reason, '') NOT IN ('breaker', 'probe', 'upstream', 'budget') THEN
        reason := 'stalled';
    ELSIF (CASE lane WHEN 0 THEN v_room.calls ELSE v_room.background_calls END) <= 0 THEN
        reason := CASE coalesce(v_room.reason, 'rate') WHEN 'waiting' THEN 'behind'
            ELSE coalesce(v_room.reason, 'rate') END;
        n := CASE reason WHEN 'behind' THEN v_room.waiting END;
        name := CASE reason WHEN 'behind' THEN v_queue ELSE p_type.upstream END;
        wait_seconds := v_room.wait_seconds;
        since := p_now + v_room.wait_seconds * interval '1 second';
    ELSIF p_ledger.due_at > p_now THEN
        reason := 'later';
        since := p_ledger.due_at;
        wait_seconds := extract(epoch FROM p_ledger.due_at - p_now);
    ELSE
        reason := 'due';
        name := p_type.upstream;
        since := coalesce(p_ledger.due_at, p_now);
        SELECT count(*) INTO n FROM (
            SELECT FROM livewell.ledger o WHERE o.upstream = p_type.upstream AND o.due_at <= p_now
            LIMIT c_due_max) o;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.why_refresh IS
    'What the refresh of a stale key waits for: its job, somebody who looks, or the due check.';
REVOKE ALL ON FUNCTION livewell.why_refresh FROM PUBLIC;
