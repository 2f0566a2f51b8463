-- One turn of the queue's own upkeep: promote what is due, recover what is lost. At most once per
-- interval for the whole fleet.
--
-- Called by: any worker, every second. Whoever finds the tick due does it; a locked or early tick
--            answers ran = false at once.
CREATE OR REPLACE FUNCTION livewell.maintain(
    p_worker bigint, p_interval_seconds float8, p_grace_seconds float8, p_limit integer DEFAULT 5000
)
RETURNS TABLE (ran boolean, promoted integer, buried integer, lost integer, overdue integer)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_promoted  integer;
BEGIN
    PERFORM FROM livewell.tick t WHERE t.name = 'maintain' FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        INSERT INTO livewell.tick (name, due_at)
        SELECT 'maintain', '-infinity'
        WHERE NOT EXISTS (SELECT FROM livewell.tick t WHERE t.name = 'maintain')
        ON CONFLICT DO NOTHING;
        RETURN QUERY SELECT false, 0, 0, 0, 0;
        RETURN;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.tick t
    SET due_at = v_now + p_interval_seconds * interval '1 second', last_at = v_now,
        last_worker = p_worker, n = t.n + 1
    WHERE t.name = 'maintain' AND t.due_at <= v_now;
    IF NOT FOUND THEN
        RETURN QUERY SELECT false, 0, 0, 0, 0;
        RETURN;
    END IF;
    v_promoted := livewell.promote_jobs(p_limit) + livewell.promote_held(p_limit);
    RETURN QUERY
    SELECT true, v_promoted, r.buried, r.lost, r.overdue
    FROM livewell.recover_jobs(p_worker, p_limit, p_grace_seconds) r;
END
$$;
COMMENT ON FUNCTION livewell.maintain IS
    'Promotes due jobs and recovers lost ones, once per interval for all workers together.';
REVOKE ALL ON FUNCTION livewell.maintain FROM PUBLIC;
