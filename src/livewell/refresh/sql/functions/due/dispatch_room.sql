-- How many calls of an upstream may be put into its queues now, for each lane: permits for about
-- two seconds, less what waits already. If none, why not and for how long.
--
-- Called by: dispatch_due, dispatch_scheduled, read_throttle, why_refresh. Reads the limiter
--            without its lock: an estimate is enough here, the claim decides.
-- Index:     job_unique_key_idx, job_limited_idx, limiter_grant_idx.
-- Just in time: whatever is queued has lost its place in the order by viewers, so no
-- more is queued than the next two seconds can use (credential_room). Without a rate: twenty calls
-- for each that may run at once, and p_page at most.
-- Background work that waits takes nothing from lane 0, which goes before it anyway. A queue whose
-- viewers' jobs could have run for 15 seconds and did not is stalled: no worker serves its pool, or
-- it is paused. It gets no more, and what lies there does not count, or one pool without workers
-- would stop the whole upstream. Jobs that wait for the limiter make no queue stalled: while it
-- lets nothing through none is, and the time that an open breaker or a silence took does not count.
-- Producers stop before the budget does: what waits counts as used (R11). Paused by the breaker or
-- by the upstream itself: nothing. Half open: one, for the probe, beside whatever waits for keys
-- that are failing: those do not probe while there is another (R13).
CREATE OR REPLACE FUNCTION livewell.dispatch_room(
    p_upstream text, p_now timestamptz, p_page integer)
RETURNS TABLE (
    calls integer, background_calls integer, units bigint, background_units bigint, waiting integer,
    background_waiting integer, wait_seconds float8, reason text, stalled text[])
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_variable
DECLARE
    v_limiter   livewell.limiter;
    v_queues    pg_catalog.text[] := livewell.list_refresh_queues(p_upstream);
    v_units     bigint[];               -- of what waits: in lane 0, in both
    -- Seconds that a ready job may wait before its queue is stalled.
    v_patience  pg_catalog.float8;
    v_free_at   pg_catalog.timestamptz; -- since when some credential lets calls through
    v_probing   boolean;                -- and only for a probe
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_upstream;
    IF FOUND THEN
        SELECT c.calls, c.background_calls, c.units, c.background_units, c.wait_seconds, c.reason,
               c.patience, c.free_at, c.probing
        INTO calls, background_calls, units, background_units, wait_seconds, reason,
             v_patience, v_free_at, v_probing
        FROM livewell.credential_room(v_limiter, p_now, p_page) AS c;
        IF v_limiter.concurrency IS NOT NULL AND v_limiter.rate_calls IS NULL THEN
            calls := least(calls, 20 * v_limiter.concurrency);
        END IF;
    ELSE
        calls := p_page;
        background_calls := p_page;
        v_patience := 15;
        v_free_at := '-infinity';
        v_probing := false;
    END IF;
    stalled := ARRAY(
        SELECT q FROM unnest(v_queues) AS q
        CROSS JOIN LATERAL (
            SELECT j.rank FROM livewell.job j
            WHERE j.queue = q AND j.state = 'ready' AND j.lost = 0 AND j.lane = 0
            ORDER BY j.rank LIMIT 1) o
        WHERE o.rank < (extract(epoch FROM p_now) - v_patience) * 1000
          AND v_free_at < p_now - v_patience * interval '1 second');
    SELECT count(DISTINCT coalesce(w.call_key, w.id::pg_catalog.text)) FILTER (WHERE w.lane = 0),
           count(DISTINCT coalesce(w.call_key, w.id::pg_catalog.text)) FILTER (WHERE w.lane = 1),
           ARRAY[coalesce(sum(w.units) FILTER (WHERE w.lane = 0), 0), coalesce(sum(w.units), 0)]
    INTO waiting, background_waiting, v_units FROM (
        SELECT j.id, j.call_key, j.units, j.lane FROM livewell.job j
        WHERE j.queue = ANY (v_queues) AND j.queue <> ALL (stalled) AND j.unique_key IS NOT NULL
          AND j.held_by IS DISTINCT FROM 'k' AND j.state IN ('ready', 'held')
          AND NOT (v_probing AND EXISTS (
              SELECT FROM livewell.limiter_failing f
              WHERE f.limiter = p_upstream AND f.key = coalesce(j.group_key, j.unique_key)
                AND f.failures > 0))
        LIMIT 5000) w;
    calls := least(calls, p_page);
    background_calls := least(background_calls, calls);
    IF calls > 0 AND calls <= waiting THEN
        reason := 'waiting';
        wait_seconds := CASE WHEN v_limiter.rate_calls IS NULL THEN 0.02 ELSE 0.5 END;
    END IF;
    calls := greatest(calls - waiting, 0);
    background_calls := greatest(background_calls - waiting - background_waiting, 0);
    IF v_limiter.budget_unit = 'calls' THEN
        v_units := ARRAY[waiting, waiting + background_waiting];
    END IF;
    units := units - v_units[1];
    background_units := background_units - v_units[2];
    IF units <= 0 THEN
        calls := 0;
        reason := 'budget';
        wait_seconds := coalesce(wait_seconds, 5);
    END IF;
    IF background_units <= 0 THEN
        background_calls := 0;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.dispatch_room IS
    'How many calls of an upstream may be queued now, per lane; if none, why and for how long.';
REVOKE ALL ON FUNCTION livewell.dispatch_room FROM PUBLIC;
