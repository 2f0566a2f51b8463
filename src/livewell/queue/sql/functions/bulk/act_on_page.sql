-- Lock the jobs or dead letters of one page, and do to them what the act says.
--
-- Called by: step_bulk_act, which holds the lock of the act.
-- Answer:    the ids that could be locked and still match, and how many of them it was done to. The
--            rules are those of the function that does it to one.
-- Index:     primary keys.
CREATE OR REPLACE FUNCTION livewell.act_on_page(p_act livewell.bulk_act, p_ids bigint[])
RETURNS TABLE (locked bigint[], done bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_locked    bigint[];
    v_done      bigint;
BEGIN
    IF p_act.action IN ('cancel', 'hasten') THEN
        v_locked := ARRAY(
            SELECT j.id FROM livewell.job j
            WHERE j.id = ANY (p_ids)
                AND j.state::text = coalesce(p_act.filter ->> 'state', j.state::text)
            ORDER BY j.id FOR UPDATE SKIP LOCKED
        );
    ELSE
        v_locked := ARRAY(
            SELECT d.id FROM livewell.dead_job d
            WHERE d.id = ANY (p_ids) AND d.died_at <= p_act.before_at
            ORDER BY d.id FOR UPDATE SKIP LOCKED
        );
    END IF;
    CASE p_act.action
        WHEN 'cancel' THEN
            v_done := livewell.cancel_jobs(v_locked);
        WHEN 'hasten' THEN
            SELECT count(*) INTO v_done FROM unnest(v_locked) AS l (id)
            WHERE livewell.hasten_job(l.id);
        WHEN 'redrive' THEN
            SELECT r.redriven INTO v_done
            FROM livewell.redrive_dead(v_locked, NULL, NULL, cardinality(v_locked)) r;
        WHEN 'discard' THEN
            v_done := livewell.discard_dead(v_locked);
    END CASE;
    RETURN QUERY SELECT v_locked, v_done;
END
$$;
COMMENT ON FUNCTION livewell.act_on_page IS
    'Does one page of an act on many; answers what was locked and how many it was done to.';
REVOKE ALL ON FUNCTION livewell.act_on_page FROM PUBLIC;
