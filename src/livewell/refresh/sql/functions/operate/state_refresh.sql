-- The state of the refresh engine: who watches, how fresh each type is, what is due, what became of
-- refreshes, and whether the size estimates are right.
--
-- Called by: system_state. Keys, subscriptions, sessions and viewers come from a sample that is at
--            most ten seconds old (sample_age_seconds says how old, how whether it was counted or
--            estimated); what is due
-- is counted by index up to 10,000 for an upstream; refreshes of the last 24 hours are the sum of
-- one row per type, outcome and hour, and so are the calls and bytes that they cost (calls_day,
-- bytes_day: of 24 hours by the clock, this one included; calls_day NULL: not counted in all of them).
-- Index:     refresh_count_pkey, ledger_due_idx, stat_pkey.
CREATE OR REPLACE FUNCTION livewell.state_refresh()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    c_done      CONSTANT text[] := '{stored,corrected,unchanged,missing}';
    c_quiet     CONSTANT text[] :=
        '{stored,corrected,unchanged,missing,type_changed,singly,forgotten,fenced}';
    v_now       timestamptz := livewell.now();
    v_hour      timestamptz := date_trunc('hour', v_now, 'UTC');
    v_due_check text := livewell.due_check_name();
    v_sample    record;
    v_types     jsonb;
BEGIN
    SELECT * INTO v_sample FROM livewell.find_sample('refresh', v_now);
    IF v_sample.wanted THEN
        v_sample.value := livewell.sample_refresh(v_now);
        v_sample.at := v_now;
        PERFORM livewell.keep_sample('refresh', v_now, v_sample.value);
    END IF;

    WITH keys AS (
        SELECT k ->> 0 AS data_type, jsonb_object_agg(k ->> 1, (k ->> 2)::bigint) AS verdicts,
               sum((k ->> 3)::bigint) AS quiet
        FROM jsonb_array_elements(v_sample.value -> 'keys') AS k GROUP BY k ->> 0
    ), viewed AS (
        SELECT g.data_type, jsonb_object_agg(g.verdict, g.n) AS verdicts
        FROM (
            SELECT k ->> 0 AS data_type, k ->> 1 AS verdict, sum((k ->> 2)::bigint) AS n
            FROM jsonb_array_elements(coalesce(v_sample.value -> 'viewed', '[]')) AS k
            GROUP BY k ->> 0, k ->> 1) g
        GROUP BY g.data_type
    ), watched AS (
        SELECT k ->> 0 AS data_type, (k ->> 1)::bigint AS n
        FROM jsonb_array_elements(v_sample.value -> 'subscriptions') AS k
    ), done AS (
        SELECT c.data_type, sum(c.n) FILTER (WHERE c.outcome = ANY (c_done)) AS day,
               sum(c.n) FILTER (
                   WHERE c.outcome = ANY (c_done)
                     AND c.hour >= v_hour - interval '1 hour') AS lately,
               sum(c.n) FILTER (
                   WHERE c.outcome <> ALL (c_quiet)
                     AND c.hour >= v_hour - interval '1 hour') AS refused,
               sum(greatest(c.wire_bytes, c.decoded_bytes)) FILTER (
                   WHERE c.outcome = ANY (c_done) AND c.hour >= v_hour - interval '1 hour') AS bytes,
               sum(c.calls) FILTER (WHERE c.hour > v_hour - interval '24 hours') AS calls_day,
               bool_and(c.calls IS NOT NULL) FILTER (
                   WHERE c.hour > v_hour - interval '24 hours') AS counted_day,
               sum(c.wire_bytes) FILTER (
                   WHERE c.hour > v_hour - interval '24 hours') AS wire_day,
               sum(c.decoded_bytes) FILTER (
                   WHERE c.hour > v_hour - interval '24 hours') AS decoded_day,
               sum(greatest(c.wire_bytes, c.decoded_bytes)) FILTER (
                   WHERE c.hour > v_hour - interval '24 hours') AS larger_day
        FROM livewell.refresh_count c
        WHERE c.hour > v_now - interval '25 hours' GROUP BY c.data_type
    ), outcomes AS (
        SELECT o.data_type, jsonb_object_agg(o.outcome, o.n) AS n
        FROM (
            SELECT c.data_type, c.outcome, sum(c.n) AS n FROM livewell.refresh_count c
            WHERE c.hour >= v_hour - interval '1 hour' GROUP BY c.data_type, c.outcome) o
        GROUP BY o.data_type
    )
    SELECT coalesce(jsonb_agg(jsonb_build_object(
               'name', t.name, 'upstream', t.upstream,
               'queue', livewell.refresh_queue(t.upstream, t.pool), 'strategy', t.strategy,
               'ttl_seconds', extract(epoch FROM t.ttl)::float8,
               'paused_at', t.paused_at, 'upstream_paused_at', u.paused_at,
               'parked_reason', t.parked_reason, 'applied_at', t.applied_at,
               'keys', coalesce(k.verdicts, '{}'), 'quiet', coalesce(k.quiet, 0),
               'viewed', coalesce(v.verdicts, '{}'), 'subscriptions', coalesce(w.n, 0),
               'refreshed_day', coalesce(d.day, 0), 'refreshed', coalesce(d.lately, 0),
               'calls_day', CASE WHEN coalesce(d.counted_day, true)
                   THEN coalesce(d.calls_day, 0) END,
               'bytes_day', coalesce(CASE u.counts
                   WHEN 'wire' THEN d.wire_day
                   WHEN 'decoded' THEN d.decoded_day
                   ELSE d.larger_day END, 0),
               'refused', coalesce(d.refused, 0), 'outcomes', coalesce(o.n, '{}'),
               'size_estimate', livewell.expected_size(t.upstream, t.name, t.size_estimate)::float8,
               'size_measured', CASE WHEN d.lately > 0 THEN (d.bytes / d.lately)::float8 END)
               ORDER BY t.name), '[]')
    INTO v_types
    FROM (SELECT * FROM livewell.data_type a ORDER BY a.name LIMIT 1000) t
    JOIN livewell.upstream u ON u.name = t.upstream
    LEFT JOIN keys k ON k.data_type = t.name
    LEFT JOIN viewed v ON v.data_type = t.name
    LEFT JOIN watched w ON w.data_type = t.name
    LEFT JOIN done d ON d.data_type = t.name
    LEFT JOIN outcomes o ON o.data_type = t.name;

    RETURN jsonb_build_object(
        'how', v_sample.value ->> 'how', 'sampled_at', v_sample.at,
        'sample_age_seconds', extract(epoch FROM v_now - v_sample.at)::float8,
        'viewers', v_sample.value -> 'viewers', 'sessions', v_sample.value -> 'sessions',
        'subscriptions', (
            SELECT coalesce(sum((k ->> 1)::bigint), 0)
            FROM jsonb_array_elements(v_sample.value -> 'subscriptions') AS k),
        'types', v_types,
        'due', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'upstream', u.name, 'keys', d.n,
                'oldest_seconds', extract(epoch FROM v_now - d.oldest)::float8)
                ORDER BY u.name), '[]')
            FROM (SELECT * FROM livewell.upstream a ORDER BY a.name LIMIT 1000) u
            CROSS JOIN LATERAL (
                SELECT count(*) AS n, min(x.due_at) AS oldest FROM (
                    SELECT l.due_at FROM livewell.ledger l
                    WHERE l.upstream = u.name AND l.due_at <= v_now
                    ORDER BY l.due_at LIMIT 10000) x) d),
        'due_check', (
            SELECT jsonb_build_object(
                'per_minute', coalesce(sum(s.n), 0)::float8 / 5,
                'mean_ms', sum(s.ms)::float8 / nullif(sum(s.n), 0))
            FROM livewell.stat s
            WHERE s.minute > v_now - interval '5 minutes' AND s.queue = v_due_check
              AND s.kind = 'livewell.due_check'));
END
$$;
COMMENT ON FUNCTION livewell.state_refresh IS
    'Viewers, freshness by type, what is due and what became of refreshes, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_refresh FROM PUBLIC;
