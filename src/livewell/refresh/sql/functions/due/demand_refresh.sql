-- A reader wants this key refreshed: make its job, in the lane of people who wait, unless the key
-- turns out to be fresh enough, absent or backed off.
--
-- Called by: read_through. Answer: as its demand: queued, waiting, due; or none, missing,
--            backed_off.
-- The job is enqueued right here instead of by dispatch, one hop less. While c_waiting_max wait in
-- the queue that would gain nothing, so the key becomes due and dispatch puts it in order.
-- Lock, then look again, in statements of their own. The job's key is inserted without waiting (see
-- enqueue_jobs), and one key has one job, so limits and order hold as they do for dispatch.
-- Index: ledger_pkey, job_ready_idx, job_unique_key_idx.
CREATE OR REPLACE FUNCTION livewell.demand_refresh(
    p_type livewell.data_type, p_key text, p_max_age float8)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    c_waiting_max CONSTANT integer := 200;
    v_now       pg_catalog.timestamptz;
    v_l         livewell.ledger;
    v_name      pg_catalog.text := p_type."name";
    v_queue     pg_catalog.text := livewell.refresh_queue(p_type.upstream, p_type.pool);
    v_demand    pg_catalog.text;
    v_answer    pg_catalog.text;
BEGIN
    SELECT l.* INTO v_l FROM livewell.ledger l
    WHERE l.data_type = p_type.name AND l.key = p_key FOR NO KEY UPDATE;
    v_now := livewell.now();
    IF NOT FOUND THEN
        INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at)
        VALUES (v_name, p_key, p_type.upstream, v_now, v_now) ON CONFLICT DO NOTHING;
        SELECT l.* INTO v_l FROM livewell.ledger l
        WHERE l.data_type = p_type.name AND l.key = p_key FOR NO KEY UPDATE;
    END IF;
    v_demand := livewell.refresh_wanted(p_type, v_l, p_max_age, v_now);
    IF v_demand <> 'wanted' THEN
        RETURN v_demand;
    END IF;
    v_demand := 'due';
    IF (SELECT count(*) FROM (
            SELECT FROM livewell.job j WHERE j.queue = v_queue AND j.state = 'ready' AND j.lost = 0
            LIMIT c_waiting_max) w) < c_waiting_max THEN
        SELECT coalesce(min(e.answer), 'inserted') INTO v_answer FROM livewell.enqueue_jobs((
            SELECT jsonb_agg(to_jsonb(j))
            FROM livewell.refresh_jobs(ARRAY[v_name], ARRAY[p_key], ARRAY[0]) AS j)) AS e;
        v_demand := CASE v_answer
            WHEN 'inserted' THEN 'queued' WHEN 'vanished' THEN 'due' ELSE 'waiting' END;
    END IF;
    -- As dispatch does: out of sight for two minutes, in which the job decides; a key that dispatch
    -- is to come to is due now.
    UPDATE livewell.ledger l
    SET demanded_at = v_now, wanted_at = v_now,
        due_at = CASE v_demand WHEN 'due' THEN v_now ELSE v_now + interval '2 minutes' END,
        demand_class = CASE l.demand_class WHEN 0 THEN 1 ELSE l.demand_class END
    WHERE l.data_type = p_type.name AND l.key = p_key;
    RETURN v_demand;
END
$$;
COMMENT ON FUNCTION livewell.demand_refresh IS
    'Queues the refresh of a key for somebody who waits, or says why not.';
REVOKE ALL ON FUNCTION livewell.demand_refresh FROM PUBLIC;
