-- Exports in the system state: what waits, what fails, what is stored, who renders.
--
-- Called by: system_state, which finds every state_<name>().
-- Of what has not ended, and of what ended within the hour, 20,000 are counted at most.
-- Nothing here comes from a document: no names, no ids, no options (E15).
CREATE OR REPLACE FUNCTION livewell.state_exports()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_open  jsonb;
    v_hour  jsonb;
    v_used  jsonb;
    v_clean jsonb;
BEGIN
    SELECT jsonb_build_object(
        'waiting', count(*) FILTER (WHERE o.state = 'waiting' AND o.reason IS NULL),
        'retrying', count(*) FILTER (WHERE o.state = 'waiting' AND o.reason IS NOT NULL),
        'running', count(*) FILTER (WHERE o.state = 'running'),
        'oldest_seconds', extract(epoch FROM v_now - min(o.created_at) FILTER (
            WHERE o.state = 'waiting' AND o.attempt = 0))::float8)
    INTO v_open
    FROM (
        SELECT e.state, e.reason, e.created_at, e.attempt FROM livewell.export e
        WHERE e.state IN ('waiting', 'running') ORDER BY e.created_at LIMIT 20000
    ) o;
    SELECT jsonb_build_object(
        'finished', count(*) FILTER (WHERE g.state IN ('finished', 'deleted')),
        'failed', count(*) FILTER (WHERE g.state = 'failed'),
        'cancelled', count(*) FILTER (WHERE g.state = 'cancelled'),
        'per_minute', count(*) FILTER (
            WHERE g.state IN ('finished', 'deleted')
                AND g.finished_at > v_now - interval '5 minutes')::float8 / 5,
        'median_seconds', percentile_cont(0.5) WITHIN GROUP (ORDER BY g.took)
            FILTER (WHERE g.state IN ('finished', 'deleted')),
        'p95_seconds', percentile_cont(0.95) WITHIN GROUP (ORDER BY g.took)
            FILTER (WHERE g.state IN ('finished', 'deleted')))
    INTO v_hour
    FROM (
        SELECT e.state, e.finished_at,
            extract(epoch FROM e.finished_at - e.created_at)::float8 AS took
        FROM livewell.export e
        WHERE e.finished_at > v_now - interval '1 hour'
        ORDER BY e.finished_at DESC LIMIT 20000
    ) g;
    SELECT jsonb_build_object(
        'stored_bytes', coalesce(sum(u.stored_bytes), 0),
        'reserved_bytes', coalesce(sum(u.reserved_bytes), 0),
        'users', count(*) FILTER (WHERE u.stored_bytes + u.reserved_bytes > 0),
        'near_quota', count(*) FILTER (
            WHERE (u.stored_bytes + u.reserved_bytes) * 10 >= u.bytes_max * 9))
    INTO v_used FROM livewell.export_usage u;
    SELECT jsonb_build_object(
        'removing', count(*),
        'oldest_seconds', extract(epoch FROM v_now - least(min(f.given_up_at), (
            SELECT min(e.expires_at) FROM livewell.export e
            WHERE e.stored_bytes > 0 AND e.expires_at <= v_now)))::float8)
    INTO v_clean FROM livewell.export_file f WHERE f.state = 'removing';
    RETURN jsonb_build_object('how', 'exact') || v_open || jsonb_build_object(
        'hour', v_hour, 'usage', v_used, 'cleanup', v_clean,
        'reasons', livewell.list_export_failures(v_now - interval '1 hour'),
        'largest', livewell.list_export_users(20),
        'renderers', livewell.list_renderers(v_now));
END
$$;
COMMENT ON FUNCTION livewell.state_exports IS 'What is being made, what fails, and what is stored.';
REVOKE ALL ON FUNCTION livewell.state_exports FROM PUBLIC;
