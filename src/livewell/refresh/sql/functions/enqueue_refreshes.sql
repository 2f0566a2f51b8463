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
        SELECT jsonb_agg(jsonb_build_object(
                   'id', v_ids[g.place], 'queue', 'refresh.' || t.upstream || coalesce('.' || t.pool, ''), 'kind', 'livewell.refresh',
                   'payload', jsonb_build_object('type', g.name, 'key', g.key, 'version', t.version), 'unique_key', g.name || ':' || g.key, 'policy', 'raise', 'group_key', g.key,
                   'call_key', CASE WHEN t.keys_max > 1 THEN g.name || '#' || v_ids[1] || '.' || g.call ELSE g.name || ':' || g.key END,
                   'lane', g.lane, 'max_attempts', 4, 'units', t.size_estimate)),
               array_agg(DISTINCT 'refresh.' || t.upstream || coalesce('.' || t.pool, ''))
        INTO v_jobs, queues
        FROM unnest(p_types, p_keys, p_lanes, p_calls) WITH ORDINALITY AS g (name, key, lane, call, place) JOIN livewell.data_type t ON t.name = g.name;
        SELECT count(*) FILTER (WHERE a.answer IN ('merged', 'vanished', 'held', 'dropped')) INTO merged FROM livewell.enqueue_jobs(v_jobs) AS a;
        inserted := v_n - merged;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.enqueue_refreshes IS 'Queues refreshes of keys; answers how many are new.';
REVOKE ALL ON FUNCTION livewell.enqueue_refreshes FROM PUBLIC;
