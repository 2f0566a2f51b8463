-- Runs that are left running although their lease is over become crashed (S4).
--
-- Called by: tick_schedules(), so at start-up and with every turn of every scheduler.
-- Index:     run_running_idx (schedule) WHERE state = 'running'
-- The lease is locked before the run is touched, as finish_run does it: a run that is being
-- finished right now has not crashed. SKIP LOCKED: nobody waits here.
CREATE OR REPLACE FUNCTION livewell.crash_runs(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_names     text[];
    v_crashed   integer;
BEGIN
    IF NOT EXISTS (SELECT FROM livewell.run r WHERE r.state = 'running') THEN
        RETURN 0;
    END IF;
    SELECT array_agg(l.name) INTO v_names
    FROM (
        SELECT s.name FROM livewell.singleton s
        WHERE s.name = ANY (
            ARRAY(
                SELECT 'schedule.' || r.schedule FROM livewell.run r
                WHERE r.state = 'running'
                ORDER BY r.schedule LIMIT p_limit
            )
        )
        ORDER BY s.name FOR NO KEY UPDATE SKIP LOCKED
    ) l;
    v_now := livewell.now();
    UPDATE livewell.run r
    SET state = 'crashed', finished_at = greatest(v_now, r.started_at),
        error = 'its lease ran out: the process ended, stood still, or lost the database'
    FROM livewell.singleton s
    WHERE s.name = ANY (v_names)
        AND r.schedule = substr(s.name, 10)
        AND r.state = 'running'
        AND (s.fence <> r.fence OR s.expires_at <= v_now);
    GET DIAGNOSTICS v_crashed = ROW_COUNT;
    RETURN v_crashed;
END
$$;
COMMENT ON FUNCTION livewell.crash_runs IS
    'Turns running runs whose lease is over into crashed ones; answers how many.';
REVOKE ALL ON FUNCTION livewell.crash_runs FROM PUBLIC;
