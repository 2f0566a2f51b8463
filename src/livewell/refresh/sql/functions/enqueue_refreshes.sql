-- Make refresh jobs of these keys, in the order given, each with its lane and its call.
--
-- Called by: dispatch_due, dispatch_scheduled. The lane is theirs, never the registry's (contract 8).
-- One job per (type, key), however many ask (R8): the unique key with policy raise. Jobs of one call number share a call key, so that one HTTP call can carry them; NULL would share with all.
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
    v_jobs      jsonb;
BEGIN
    inserted := 0;
    merged := 0;
    queues := '{}';
    IF v_n > 0 THEN
        v_ids := ARRAY(SELECT b + o FROM livewell.reserve_job_ids((v_n + 63) / 64) AS b, generate_series(0, 63) AS o ORDER BY 1 LIMIT v_n);
        SELECT jsonb_agg(to_jsonb(j)), array_agg(DISTINCT j.queue) INTO v_jobs, queues FROM (        -- a row at a time: half of what jsonb_build_object takes
            SELECT v_ids[g.place] AS id, 'refresh.' || t.upstream || coalesce('.' || t.pool, '') AS queue, 'livewell.refresh' AS kind,
                   jsonb_build_object('type', g.name, 'key', g.key, 'version', t.version) AS payload, g.name || ':' || g.key AS unique_key, 'raise' AS policy, g.key AS group_key,
                   CASE WHEN t.keys_max > 1 THEN g.name || '#' || v_ids[1] || '.' || g.call ELSE g.name || ':' || g.key END AS call_key,
                   g.lane, 4 AS max_attempts, t.size_estimate AS units
            FROM unnest(p_types, p_keys, p_lanes, p_calls) WITH ORDINALITY AS g (name, key, lane, call, place) JOIN livewell.data_type t ON t.name = g.name) j;
        SELECT count(*) FILTER (WHERE a.answer IN ('merged', 'vanished', 'held', 'dropped')) INTO merged FROM livewell.enqueue_jobs(v_jobs) AS a;
        inserted := v_n - merged;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.enqueue_refreshes IS 'Queues refreshes of keys; answers how many are new.';
REVOKE ALL ON FUNCTION livewell.enqueue_refreshes FROM PUBLIC;
