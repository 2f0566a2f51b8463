-- The job that refreshes a key, as enqueue_jobs takes it.
--
-- Called by: read_through.
-- One per key (unique_key, raised to the better lane); never two calls at once for one key of an upstream (group_key); keys of a type with a batch endpoint may share a call (call_key): as many
-- numbers in a row as a call may have keys give the same one, so a call never has more. Keys that fail go with each other only, as in enqueue_refreshes.
-- units: expected_size.
CREATE OR REPLACE FUNCTION livewell.refresh_job(p_type livewell.data_type, p_key text, p_lane integer)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_id    bigint := (SELECT b FROM livewell.reserve_job_ids(1) AS b);     -- the first of a block of 64
    v_type  pg_catalog.text := p_type."name";
    v_asked record;
BEGIN
    SELECT a.failing, a.payload INTO v_asked FROM livewell.refresh_payloads(ARRAY[v_type], ARRAY[p_key]) AS a;
    RETURN jsonb_build_object(
        'id', v_id, 'queue', 'refresh.' || p_type.upstream || coalesce('.' || p_type.pool, ''), 'kind', 'livewell.refresh', 'lane', p_lane, 'max_attempts', 4,
        'payload', v_asked.payload,
        'unique_key', p_type.name || ':' || p_key, 'policy', 'raise', 'group_key', p_key, 'call_key', p_type.name || CASE WHEN p_type.keys_max > 1 THEN '#' || v_id / 64 / p_type.keys_max || CASE WHEN v_asked.failing THEN '!' ELSE '' END ELSE ':' || p_key END,
        'units', livewell.expected_size(p_type.upstream, v_type, p_type.size_estimate));
END
$$;
COMMENT ON FUNCTION livewell.refresh_job IS 'The job that refreshes one key, as enqueue_jobs takes it.';
REVOKE ALL ON FUNCTION livewell.refresh_job FROM PUBLIC;
