-- What a key of each type costs, as measured, and how often it is asked for.
--
-- Called by: plan_state.
-- bytes_per_key and tries as counted in the last day (every answer costs, also one that is
-- refused); until something was counted, expected_size. open_share: how much of the next 30 days
-- its exchange is open, where the rule asks for it.
CREATE OR REPLACE FUNCTION livewell.plan_types(p_now timestamptz, p_types_max integer)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_answer    jsonb;
BEGIN
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'type', t.name, 'upstream', t.upstream, 'ttl_seconds', extract(epoch FROM t.ttl)::float8,
        'keys_max', t.keys_max, 'strategy', t.strategy,
        'cron', t.cron, 'zone', t.zone,
        'stopped', t.paused_at IS NOT NULL OR t.parked_reason IS NOT NULL,
        'measured', coalesce(c.good, 0),
        'bytes_per_key', coalesce(
                c.bytes / nullif(c.answers, 0),
                livewell.expected_size(t.upstream, t.name, t.size_estimate))::float8,
        'tries', coalesce(c.answers / nullif(c.good, 0), 1)::float8,
        'universe', CASE
                WHEN t.strategy = 'scheduled'
                    THEN (
                        SELECT count(*) FROM livewell.universe n
                        WHERE n.data_type = t.name AND n.active)
                ELSE 0
            END,
        'open_share', coalesce(o.share, 1)) ORDER BY t.name), '[]') INTO v_answer
    FROM (SELECT * FROM livewell.data_type d ORDER BY d.name LIMIT p_types_max) t
    JOIN livewell.upstream u ON u.name = t.upstream
    LEFT JOIN LATERAL (
        SELECT sum(r.n)::float8 AS answers,
               sum(r.n) FILTER (
                   WHERE r.outcome IN (
                       'stored', 'corrected', 'unchanged', 'missing', 'older'))::float8 AS good,
               CASE u.counts
                   WHEN 'wire' THEN sum(r.wire_bytes)
                   WHEN 'decoded' THEN sum(r.decoded_bytes)
                   ELSE greatest(sum(r.wire_bytes), sum(r.decoded_bytes))
               END::float8 AS bytes
        FROM livewell.refresh_count r
        WHERE r.hour > p_now - interval '1 day' AND r.data_type = t.name
          AND r.outcome <> 'type_changed') c ON true
    LEFT JOIN LATERAL (
        SELECT sum(extract(
            epoch FROM least(
                s.closes_at, p_now + interval '30 days') - greatest(s.opens_at, p_now)))::float8
            / 2592000 AS share
        FROM livewell.exchange_session s
        WHERE t.rule = 'session' AND s.calendar = t.calendar
          AND s.opens_at < p_now + interval '30 days' AND s.opens_at > p_now - interval '1 day'
          AND s.closes_at > p_now) o ON true;
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.plan_types IS 'What a key of each type costs, as measured.';
REVOKE ALL ON FUNCTION livewell.plan_types FROM PUBLIC;
