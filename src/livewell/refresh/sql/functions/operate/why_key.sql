-- Why is this key as fresh, or as stale, as it is? One answer, the first that applies, in the order in which things would have to be overcome (X8).
--
-- Called by: `livewell why`, GET /v1/data/{type}/{key}/why.
-- Index:     data_type_pkey, ledger_pkey, subscription_key_idx, job_unique_key_idx; ledger_due_idx, a bounded page of it.
-- Reasons:
--     unknown_type, bad_key, never_asked                        there is nothing to be fresh
--     fresh, unverifiable, lagging, missing                     not stale by its rule: the verdict says what else is to be said
--     parked_type, paused_type, paused_upstream                 stale, and by somebody's will not refreshed
--     parked_key, failing                                       stale, and not asked for again before retry_at
--     running, delayed, held_key, held_group, paused_queue, no_worker, no_task, no_credential, suspect, queue_limit, concurrency, key_limit, rate, budget, breaker, probe, upstream, behind, next
--                                                               it has a job: what why_job says of that. A job that is delayed because it failed is failing
--     not_watched, scheduled                                    no job, and nobody to make one for: parked until somebody looks, or until the next walk
--     stalled, later, due                                       no job yet: its queue does not move; not looked at before its time; waits its turn among n
--     no_worker, paused_queue, rate, budget, breaker, probe, upstream, behind       and without a job too: what keeps the due check from making one
-- It looks without locks: the answer is about this moment. Runs with the rights of its caller, who must see all viewers and jobs: not for livewell_api.
CREATE OR REPLACE FUNCTION livewell.why_key(p_type text, p_key text)
RETURNS TABLE (reason text, verdict text, viewers integer, source_at timestamptz, fetched_at timestamptz, checked_at timestamptz, fresh_until timestamptz, failing_since timestamptz, failures integer,
               failure text, error text, retry_at timestamptz, job_id bigint, lane integer, n bigint, of_limit bigint, other_id bigint, name text, since timestamptz, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_due_max   CONSTANT integer := 10000;
    v_now       timestamptz := livewell.now();
    v_type      livewell.data_type;
    v_upstream  livewell.upstream;
    v_l         livewell.ledger;
    v_queue     livewell.queue;
    v_name      text;                   -- of its queue
    v_demanded  boolean;                -- somebody waits for it by read-through
    v_why       record;
    v_room      record;
BEGIN
    SELECT d.* INTO v_type FROM livewell.data_type d WHERE d.name = p_type;
    IF NOT FOUND THEN
        reason := 'unknown_type';
        RETURN NEXT;
        RETURN;
    END IF;
    v_type.definition := NULL;          -- a row that is handed to a function is unpacked each time: without what makes it large
    v_type.columns := NULL;
    IF NOT livewell.key_fits(v_type.key_pattern, p_key) THEN
        reason := 'bad_key';
        name := v_type.key_pattern;
        RETURN NEXT;
        RETURN;
    END IF;
    viewers := livewell.count_viewers(p_type, p_key);
    SELECT l.* INTO v_l FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = p_key;
    IF NOT FOUND THEN
        reason := 'never_asked';
        verdict := 'missing';
        RETURN NEXT;
        RETURN;
    END IF;
    verdict := livewell.verdict(v_type, v_l, v_now);
    source_at := v_l.source_at;
    fetched_at := v_l.fetched_at;
    checked_at := v_l.checked_at;
    fresh_until := nullif(livewell.stale_at(v_type, v_l), '-infinity');
    failing_since := v_l.failing_since;
    failures := v_l.failures;
    failure := v_l.reason;
    error := v_l.error;
    retry_at := v_l.retry_at;
    IF NOT livewell.is_stale(v_type, v_l, v_now) THEN
        reason := verdict;
        RETURN NEXT;
        RETURN;
    END IF;

    -- Stale. By whose will?
    SELECT u.* INTO v_upstream FROM livewell.upstream u WHERE u.name = v_type.upstream;
    IF v_type.parked_reason IS NOT NULL OR v_type.paused_at IS NOT NULL OR v_upstream.paused_at IS NOT NULL THEN
        reason := CASE WHEN v_type.parked_reason IS NOT NULL THEN 'parked_type' WHEN v_type.paused_at IS NOT NULL THEN 'paused_type' ELSE 'paused_upstream' END;
        name := CASE reason WHEN 'parked_type' THEN v_type.parked_reason WHEN 'paused_type' THEN p_type ELSE v_upstream.name END;
        since := CASE reason WHEN 'paused_type' THEN v_type.paused_at WHEN 'paused_upstream' THEN v_upstream.paused_at END;
        RETURN NEXT;
        RETURN;
    END IF;
    IF v_l.retry_at > v_now THEN
        reason := CASE v_l.reason WHEN 'entitlement_key' THEN 'parked_key' ELSE 'failing' END;
        since := v_l.failing_since;
        wait_seconds := extract(epoch FROM v_l.retry_at - v_now);
        RETURN NEXT;
        RETURN;
    END IF;

    -- It has a job: what does that one wait for?
    v_name := concat_ws('.', 'refresh', v_type.upstream, v_type.pool);
    SELECT q.* INTO v_queue FROM livewell.queue q WHERE q.name = v_name;
    SELECT j.id, j.lane, w.* INTO v_why FROM livewell.job j CROSS JOIN LATERAL livewell.why_job(j.id) AS w
    WHERE j.queue = v_name AND j.unique_key = p_type || ':' || p_key AND j.held_by IS DISTINCT FROM 'k' AND w.reason NOT IN ('succeeded', 'cancelled', 'dead', 'unknown');
    IF FOUND THEN
        job_id := v_why.id;
        lane := v_why.lane;
        n := v_why.n;
        of_limit := v_why.of_limit;
        other_id := v_why.other_id;
        name := v_why.name;
        since := v_why.since;
        wait_seconds := v_why.wait_seconds;
        reason := CASE v_why.reason WHEN 'paused' THEN 'paused_queue' ELSE v_why.reason END;
        IF reason = 'delayed' AND v_l.failing_since IS NOT NULL THEN
            reason := 'failing';
            retry_at := v_why.since;
            since := v_l.failing_since;
        END IF;
        RETURN NEXT;
        RETURN;
    END IF;

    -- It has none. Is there anybody to make one for?
    v_demanded := coalesce(v_l.demanded_at > v_now - interval '1 minute', false) AND coalesce(v_l.checked_at < v_l.demanded_at, true);
    lane := CASE WHEN v_type.strategy = 'scheduled' OR viewers = 0 AND NOT v_demanded THEN 1 ELSE 0 END;
    IF viewers = 0 AND NOT v_demanded AND NOT (v_type.prefetch AND coalesce(v_l.wanted_at > v_now - interval '1 day', false)) THEN
        IF v_type.strategy = 'scheduled' AND EXISTS (SELECT FROM livewell.universe u WHERE u.data_type = p_type AND u.key = p_key AND u.active) THEN
            reason := 'scheduled';
            since := (SELECT s.due_at FROM livewell.schedule s WHERE s.name = 'walk.' || p_type AND s.open_ended);
        ELSE
            reason := 'not_watched';
        END IF;
        RETURN NEXT;
        RETURN;
    END IF;
    name := v_name;
    IF v_queue.paused_at IS NOT NULL THEN
        reason := 'paused_queue';
        since := v_queue.paused_at;
        RETURN NEXT;
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM livewell.worker w WHERE livewell.works_queue(w.queues, v_name) AND w.expires_at > v_now) THEN
        reason := 'no_worker';
        RETURN NEXT;
        RETURN;
    END IF;

    -- There is. What keeps the due check from making one?
    -- What stops the whole upstream comes before what its queue does: jobs that wait for an open breaker do not move either.
    SELECT r.* INTO v_room FROM livewell.dispatch_room(v_type.upstream, v_now, 1000) AS r;
    IF v_name = ANY (v_room.stalled) AND coalesce(v_room.reason, '') NOT IN ('breaker', 'probe', 'upstream', 'budget') THEN
        reason := 'stalled';
    ELSIF (CASE lane WHEN 0 THEN v_room.calls ELSE v_room.background_calls END) <= 0 THEN
        reason := CASE coalesce(v_room.reason, 'rate') WHEN 'waiting' THEN 'behind' ELSE coalesce(v_room.reason, 'rate') END;
        n := CASE reason WHEN 'behind' THEN v_room.waiting END;
        name := CASE reason WHEN 'behind' THEN v_name ELSE v_type.upstream END;
        wait_seconds := v_room.wait_seconds;
        since := v_now + v_room.wait_seconds * interval '1 second';
    ELSIF v_l.due_at > v_now THEN
        reason := 'later';
        since := v_l.due_at;
        wait_seconds := extract(epoch FROM v_l.due_at - v_now);
    ELSE
        reason := 'due';
        name := v_type.upstream;
        since := coalesce(v_l.due_at, v_now);
        SELECT count(*) INTO n FROM (SELECT FROM livewell.ledger o WHERE o.upstream = v_type.upstream AND o.due_at <= v_now LIMIT c_due_max) o;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.why_key IS 'Why a key is fresh, or what stands in the way of its refresh: the first thing that does.';
REVOKE ALL ON FUNCTION livewell.why_key FROM PUBLIC;
