-- Take one permit of a limiter outside any job, for a call that a person makes: as if it were a job
-- of lane 0, or say why not and for how long.
--
-- Called by: `livewell types sample`. What the call used is booked by book_call, under the fence
--            that is given here.
-- Locks:     the limiter's row first; room is read by statements that begin after that.
-- A breaker that is not closed lets nobody through here: its one probe belongs to a job, whose end
-- frees it.
CREATE OR REPLACE FUNCTION livewell.take_call(p_limiter text)
RETURNS TABLE (
    credential text, fence bigint, permit_seconds float8, wait_seconds float8, reason text
)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_variable
DECLARE
    v_begun     timestamptz := livewell.now();          -- a stopwatch for the lock
    v_now       timestamptz;
    v_limiter   livewell.limiter;
    v_reserved  jsonb;
    v_c         record;
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_limiter FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'limiter "%" is not declared', p_limiter USING ERRCODE = 'LW006';
    END IF;
    v_now := livewell.now();
    SELECT coalesce(jsonb_object_agg(r.credential, r.units), '{}') INTO v_reserved
    FROM (
        SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
        WHERE j.queue = ANY (ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = p_limiter))
            AND j.credential IS NOT NULL
        GROUP BY j.credential
    ) r;
    FOR v_c IN
        SELECT r.*
        FROM livewell.limiter_room(
            v_limiter, v_now, v_reserved, v_limiter.estimate_units, '{}'
        ) AS r
        ORDER BY (CASE WHEN r.probe THEN 0 ELSE r.calls END) DESC, r.wait_seconds LIMIT 1
    LOOP
        wait_seconds := v_c.wait_seconds;
        reason := CASE WHEN v_c.probe THEN 'probe' ELSE v_c.reason END;
        IF v_c.calls > 0 AND NOT v_c.probe THEN
            credential := v_c.credential;
            IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
                'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
            )::bit(32)::bigint
            THEN
                PERFORM livewell.raise_fences();       -- a failover
            END IF;
            fence := nextval('livewell.fence_seq');
            permit_seconds := v_limiter.permit_seconds
                + greatest(extract(epoch FROM v_now - v_begun), 0);
            wait_seconds := NULL;
            reason := NULL;
            PERFORM livewell.grant_calls(v_limiter, credential, v_now, 1, NULL, ARRAY[fence]);
        END IF;
    END LOOP;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.take_call IS
    'Takes one permit of a limiter for a call outside any job.';
REVOKE ALL ON FUNCTION livewell.take_call FROM PUBLIC;
