-- Queue refreshes of these keys, in the order given, each with its lane and its call
-- (refresh_jobs).
--
-- Called by: dispatch_due (queue_chosen), dispatch_scheduled.
-- Answer:    how many were inserted, how many merged into a job that was there; and the queues that
--            have something new.
-- Keys that are free go by arrays; only those that have a job take the long way, to raise it.
CREATE OR REPLACE FUNCTION livewell.enqueue_refreshes(
    p_types text[], p_keys text[], p_lanes integer[], p_calls integer[])
RETURNS TABLE (inserted integer, merged integer, queues text[])
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_n         integer := cardinality(p_keys);
    v_new       record;                 -- the jobs, as arrays
    v_taken     bigint[];               -- whose key has a job already
BEGIN
    inserted := 0;
    merged := 0;
    queues := '{}';
    IF v_n > 0 THEN
        SELECT array_agg(j.id) AS ids, array_agg(j.queue) AS queues, array_agg(j.lane) AS lanes,
               array_agg(j.unique_key) AS keys, array_agg(j.group_key) AS groups,
               array_agg(j.call_key) AS calls, array_agg(j.units) AS units,
               array_agg(j.payload) AS payloads,
               min(j.kind) AS kind, min(j.policy) AS policy, min(j.max_attempts) AS attempts
        INTO v_new FROM livewell.refresh_jobs(p_types, p_keys, p_lanes, p_calls) AS j;
        v_taken := livewell.enqueue_keyed(
            v_new.kind, v_new.attempts, v_new.ids, v_new.queues, v_new.lanes, v_new.keys,
            v_new.groups, v_new.calls, v_new.units, v_new.payloads);
        queues := ARRAY(SELECT DISTINCT q FROM unnest(v_new.queues) AS q ORDER BY q);
        IF cardinality(v_taken) > 0 THEN
            SELECT count(*) FILTER (WHERE a.answer IN ('merged', 'vanished', 'held', 'dropped'))
            INTO merged FROM livewell.enqueue_jobs((
                SELECT jsonb_agg(to_jsonb(j)) FROM (
                    SELECT n.*, v_new.kind AS kind, v_new.policy AS policy,
                           v_new.attempts AS max_attempts
                    FROM unnest(
                        v_new.ids, v_new.queues, v_new.lanes, v_new.keys, v_new.groups, v_new.calls,
                        v_new.units, v_new.payloads)
                        AS n (id, queue, lane, unique_key, group_key, call_key, units, payload)
                    WHERE n.id = ANY (v_taken)) j)) AS a;
        END IF;
        inserted := v_n - merged;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.enqueue_refreshes IS
    'Queues refreshes of keys; answers how many are new.';
REVOKE ALL ON FUNCTION livewell.enqueue_refreshes FROM PUBLIC;
