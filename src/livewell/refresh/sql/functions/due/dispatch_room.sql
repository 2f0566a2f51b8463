-- How many calls of an upstream may be put into its queues now, for each lane: permits for about two seconds, less what waits already. If none, why not and for how long.
--
-- Called by: dispatch_due, dispatch_scheduled. Reads the limiter without its lock: an estimate is enough here, the claim decides.
-- Index:     job_unique_key_idx, job_limited_idx, limiter_grant_idx.
-- Just in time (DESIGN 6): whatever is queued has lost its place in the order by viewers, so no more is queued than the next two seconds can use. Without a rate: twenty calls for each that
-- may run at once, and p_page at most.
-- Background work that waits takes nothing from lane 0, which goes before it anyway. A queue whose viewers' jobs could have run for 15 seconds and did not is stalled: no worker serves its pool, or it is
-- paused. It gets no more, and what lies there does not count, or one pool without workers would stop the whole upstream. Jobs that wait for the limiter make no queue stalled: while it lets nothing through none
-- is, and the time that an open breaker or a silence took does not count.
-- Producers stop before the budget does: what waits counts as used (R11). Paused by the breaker or by the upstream itself: nothing; half open: one, for the probe,
-- beside whatever waits for keys that are failing: those do not probe while there is another (R13).
CREATE OR REPLACE FUNCTION livewell.dispatch_room(p_upstream text, p_now timestamptz, p_page integer)
RETURNS TABLE (calls integer, background_calls integer, units bigint, background_units bigint, waiting integer, background_waiting integer, wait_seconds float8, reason text, stalled text[])
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_variable
DECLARE
    c_ahead     CONSTANT pg_catalog.float8 := 2;       -- seconds
    v_limiter   livewell.limiter;
    v_queues    pg_catalog.text[] := ARRAY(SELECT q.name FROM livewell.queue q WHERE q.name = 'refresh.' || p_upstream OR starts_with(q.name, 'refresh.' || p_upstream || '.'));
    v_shared    pg_catalog.text[];                     -- all queues of the limiter
    v_units     bigint[];                   -- of what waits: in lane 0, in both
    v_reserved  pg_catalog.jsonb;
    v_c         record;
    v_ahead     integer;
    v_patience  pg_catalog.float8 := 15;               -- seconds that a ready job may wait before its queue is stalled; longer where a call takes long to come round
    v_free_at   pg_catalog.timestamptz := 'infinity';  -- since when some credential lets calls through
    v_probing   boolean := true;            -- and only for a probe
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_upstream;
    calls := p_page;
    background_calls := p_page;
    IF FOUND THEN
        calls := 0;
        background_calls := 0;
        v_shared := ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = p_upstream);
        SELECT coalesce(jsonb_object_agg(r.credential, r.units), '{}') INTO v_reserved FROM (
            SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j WHERE j.queue = ANY (v_shared) AND j.credential IS NOT NULL GROUP BY j.credential) r;
        FOR v_c IN
            SELECT r.*, least(v_limiter.rate_calls, c.learnt_calls) AS rate, greatest(c.free_at, c.open_until, c.quiet_until) AS free_at
            FROM livewell.limiter_room(v_limiter, p_now, v_reserved, 1, ARRAY(
                SELECT c.name FROM livewell.limiter_credential c WHERE c.limiter = p_upstream AND c.probe_fence IS NOT NULL
                  AND EXISTS (SELECT FROM livewell.job j WHERE j.queue = ANY (v_shared) AND j.credential IS NOT NULL AND j.fence = c.probe_fence))) AS r
            JOIN livewell.limiter_credential c ON c.limiter = p_upstream AND c.name = r.credential
        LOOP
            IF v_c.calls > 0 OR v_c.reason = 'rate' THEN
                v_patience := greatest(v_patience, 3 * v_limiter.rate_seconds / v_c.rate);
                v_free_at := least(v_free_at, coalesce(v_c.free_at, '-infinity'));
                v_probing := v_probing AND v_c.probe;
            END IF;
            units := units + v_c.units;
            background_units := background_units + v_c.background_units;
            IF units IS NULL THEN
                units := v_c.units;
                background_units := v_c.background_units;
            END IF;
            IF v_c.reason IN ('breaker', 'upstream', 'probe', 'restart') OR v_c.units <= 0 THEN
                IF wait_seconds IS NULL OR v_c.wait_seconds < wait_seconds THEN
                    wait_seconds := v_c.wait_seconds;
                    reason := v_c.reason;
                END IF;
            ELSIF v_c.probe THEN
                calls := calls + 1;
                background_calls := background_calls + 1;
            ELSIF v_c.rate IS NULL THEN
                calls := calls + p_page;
                background_calls := background_calls + p_page;
            ELSE
                v_ahead := ceil(greatest(c_ahead - CASE WHEN v_c.calls = 0 THEN coalesce(v_c.wait_seconds, 0) ELSE 0 END, 0) * v_c.rate / v_limiter.rate_seconds);
                calls := calls + v_c.calls + v_ahead;
                background_calls := background_calls + v_c.background_calls
                    + CASE WHEN v_c.background_calls > 0 THEN v_ahead ELSE ceil(greatest(c_ahead - coalesce(v_c.wait_seconds, 0), 0) * v_c.rate / v_limiter.rate_seconds) END;
                IF v_c.calls + v_ahead = 0 AND (wait_seconds IS NULL OR v_c.wait_seconds < wait_seconds) THEN
                    wait_seconds := v_c.wait_seconds;
                    reason := 'rate';
                END IF;
            END IF;
        END LOOP;
        IF v_limiter.concurrency IS NOT NULL AND v_limiter.rate_calls IS NULL THEN
            calls := least(calls, 20 * v_limiter.concurrency);
        END IF;
    ELSE
        v_free_at := '-infinity';
        v_probing := false;
    END IF;
    stalled := ARRAY(
        SELECT q FROM unnest(v_queues) AS q
        CROSS JOIN LATERAL (SELECT j.rank FROM livewell.job j WHERE j.queue = q AND j.state = 'ready' AND j.lost = 0 AND j.lane = 0 ORDER BY j.rank LIMIT 1) o
        WHERE o.rank < (extract(epoch FROM p_now) - v_patience) * 1000 AND v_free_at < p_now - v_patience * interval '1 second');
    SELECT count(DISTINCT coalesce(w.call_key, w.id::pg_catalog.text)) FILTER (WHERE w.lane = 0), count(DISTINCT coalesce(w.call_key, w.id::pg_catalog.text)) FILTER (WHERE w.lane = 1),
           ARRAY[coalesce(sum(w.units) FILTER (WHERE w.lane = 0), 0), coalesce(sum(w.units), 0)]
    INTO waiting, background_waiting, v_units FROM (
        SELECT j.id, j.call_key, j.units, j.lane FROM livewell.job j
        WHERE j.queue = ANY (v_queues) AND j.queue <> ALL (stalled) AND j.unique_key IS NOT NULL AND j.held_by IS DISTINCT FROM 'k' AND j.state IN ('ready', 'held')
          AND NOT (v_probing AND EXISTS (SELECT FROM livewell.limiter_failing f WHERE f.limiter = p_upstream AND f.key = coalesce(j.group_key, j.unique_key) AND f.failures > 0)) LIMIT 5000) w;
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
COMMENT ON FUNCTION livewell.dispatch_room IS 'How many calls of an upstream may be queued now, per lane; if none, why and for how long.';
REVOKE ALL ON FUNCTION livewell.dispatch_room FROM PUBLIC;
