-- Make refresh jobs of these keys, in the order given, each with its lane and its call.
--
-- Called by: dispatch_due, dispatch_scheduled. The lane is theirs, never the registry's (contract 8).
-- One job per (type, key), however many ask (R8): the unique key with policy raise. Jobs of one call number share a call key, so that one HTTP call can carry them; NULL would share with all.
-- Keys that fail go with each other, never with those that are well (the ! in the call key): what they bring may make the whole answer unreadable (R14).
-- Answer:    how many were inserted and how many merged into a job that was there; and the queues that have something new.
CREATE OR REPLACE FUNCTION livewell.enqueue_refreshes(p_types text[], p_keys text[], p_lanes integer[], p_calls integer[])
RETURNS TABLE (inserted integer, merged integer, queues text[])
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_n         integer := cardinality(p_keys);
    v_ids       bigint[];
    v_new       record;                 -- the jobs, as arrays
    v_taken     bigint[];               -- whose key has a job already
BEGIN
    inserted := 0;
    merged := 0;
    queues := '{}';
    IF v_n > 0 THEN
        v_ids := ARRAY(SELECT b + o FROM livewell.reserve_job_ids((v_n + 63) / 64) AS b, generate_series(0, 63) AS o ORDER BY 1 LIMIT v_n);
        WITH types AS MATERIALIZED (
            SELECT t.name, t.upstream, t.pool, t.keys_max, livewell.expected_size(t.upstream, t.name, t.size_estimate) AS size FROM livewell.data_type t WHERE t.name = ANY (p_types)
        )
        SELECT array_agg(v_ids[g.place]) AS ids, array_agg('refresh.' || t.upstream || coalesce('.' || t.pool, '')) AS queues, array_agg(g.lane) AS lanes,
               array_agg(g.name || ':' || g.key) AS keys, array_agg(g.key) AS groups,
               array_agg(CASE WHEN t.keys_max > 1 THEN g.name || '#' || v_ids[1] || '.' || g.call || CASE WHEN g.failing THEN '!' ELSE '' END ELSE g.name || ':' || g.key END) AS calls,
               array_agg(t.size) AS units, array_agg(g.payload) AS payloads
        INTO v_new
        FROM ROWS FROM (unnest(p_types, p_keys, p_lanes, p_calls), livewell.refresh_payloads(p_types, p_keys)) WITH ORDINALITY AS g (name, key, lane, call, failing, payload, place)
        JOIN types t ON t.name = g.name;
        v_taken := livewell.enqueue_keyed('livewell.refresh', 4, v_new.ids, v_new.queues, v_new.lanes, v_new.keys, v_new.groups, v_new.calls, v_new.units, v_new.payloads);
        queues := ARRAY(SELECT DISTINCT q FROM unnest(v_new.queues) AS q ORDER BY q);
        IF cardinality(v_taken) > 0 THEN
            SELECT count(*) FILTER (WHERE a.answer IN ('merged', 'vanished', 'held', 'dropped')) INTO merged FROM livewell.enqueue_jobs((
                SELECT jsonb_agg(to_jsonb(j)) FROM (
                    SELECT n.*, 'livewell.refresh' AS kind, 'raise' AS policy, 4 AS max_attempts
                    FROM unnest(v_new.ids, v_new.queues, v_new.lanes, v_new.keys, v_new.groups, v_new.calls, v_new.units, v_new.payloads)
                         AS n (id, queue, lane, unique_key, group_key, call_key, units, payload)
                    WHERE n.id = ANY (v_taken)) j)) AS a;
        END IF;
        inserted := v_n - merged;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.enqueue_refreshes IS 'Queues refreshes of keys; answers how many are new.';
REVOKE ALL ON FUNCTION livewell.enqueue_refreshes FROM PUBLIC;
