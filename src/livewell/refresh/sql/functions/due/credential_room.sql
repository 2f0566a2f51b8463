-- What the credentials of a limiter allow together in the next two seconds: calls and units for
-- each lane. If they allow none, why not and for how long.
--
-- Called by: dispatch_room. Index: job_limited_idx, limiter_grant_idx.
-- The planner settings of dispatch_room hold here too.
-- patience:  seconds that a ready job may wait before its queue is stalled: 15, or longer where a
--            call takes long to come round.
-- free_at:   since when some credential lets calls through. probing: and only for a probe.
CREATE OR REPLACE FUNCTION livewell.credential_room(
    p_limiter livewell.limiter, p_now timestamptz, p_page integer)
RETURNS TABLE (
    calls integer, background_calls integer, units bigint, background_units bigint,
    wait_seconds float8, reason text, patience float8, free_at timestamptz, probing boolean)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    c_ahead     CONSTANT pg_catalog.float8 := 2;    -- seconds
    v_name      pg_catalog.text := p_limiter."name";
    v_shared    pg_catalog.text[] := ARRAY(         -- all queues of the limiter
        SELECT q.name FROM livewell.queue q WHERE q.limiter = v_name);
    v_reserved  pg_catalog.jsonb;
    v_c         record;
    v_ahead     integer;
BEGIN
    calls := 0;
    background_calls := 0;
    patience := 15;
    free_at := 'infinity';
    probing := true;
    SELECT coalesce(jsonb_object_agg(r.credential, r.units), '{}') INTO v_reserved FROM (
        SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
        WHERE j.queue = ANY (v_shared) AND j.credential IS NOT NULL GROUP BY j.credential) r;
    FOR v_c IN
        SELECT r.*, least(p_limiter.rate_calls, c.learnt_calls) AS rate,
               greatest(c.free_at, c.open_until, c.quiet_until) AS free_at
        FROM livewell.limiter_room(p_limiter, p_now, v_reserved, 1, ARRAY(
            SELECT c.name FROM livewell.limiter_credential c
            WHERE c.limiter = v_name AND c.probe_fence IS NOT NULL AND EXISTS (
                SELECT FROM livewell.job j
                WHERE j.queue = ANY (v_shared) AND j.credential IS NOT NULL
                  AND j.fence = c.probe_fence))) AS r
        JOIN livewell.limiter_credential c ON c.limiter = v_name AND c.name = r.credential
    LOOP
        IF v_c.calls > 0 OR v_c.reason = 'rate' THEN
            patience := greatest(patience, 3 * p_limiter.rate_seconds / v_c.rate);
            free_at := least(free_at, coalesce(v_c.free_at, '-infinity'));
            probing := probing AND v_c.probe;
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
            v_ahead := ceil(
                greatest(
                    c_ahead - CASE WHEN v_c.calls = 0 THEN coalesce(v_c.wait_seconds, 0) ELSE 0 END,
                    0)
                * v_c.rate / p_limiter.rate_seconds);
            calls := calls + v_c.calls + v_ahead;
            background_calls := background_calls + v_c.background_calls
                + CASE WHEN v_c.background_calls > 0 THEN v_ahead
                       ELSE ceil(greatest(c_ahead - coalesce(v_c.wait_seconds, 0), 0)
                                 * v_c.rate / p_limiter.rate_seconds) END;
            IF v_c.calls + v_ahead = 0
               AND (wait_seconds IS NULL OR v_c.wait_seconds < wait_seconds) THEN
                wait_seconds := v_c.wait_seconds;
                reason := 'rate';
            END IF;
        END IF;
    END LOOP;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.credential_room IS
    'What the credentials of a limiter allow in the next two seconds; if nothing, why and for how '
    'long.';
REVOKE ALL ON FUNCTION livewell.credential_room FROM PUBLIC;
