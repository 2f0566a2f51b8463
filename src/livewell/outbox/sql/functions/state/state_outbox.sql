-- The state of the outbox: what waits at which sink and since when, who delivers it, what is stuck.
--
-- Called by: system_state. Nothing is counted row by row that can be many: what waits, the oldest
--            events, dead letters and the claims until a tenant's turn come from a sample that is
--            at most ten seconds old (sample_age_seconds says how old, how whether it was counted
--            or estimated, sampled which figures these are); has_waiting, blocked and parked keys
--            (up to their bounds), relays and pace are exact.
-- tenants:   the ten that wait longest, the sink of each beside it.
-- days:      how many whole days from today on have partitions, and which of today and tomorrow
--            are missing; NULL and none while no topic is declared, for then nothing is emitted.
-- Steps:     the sample, then describe_sinks from it.
CREATE OR REPLACE FUNCTION livewell.state_outbox()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_sample    record;
    v_days      jsonb := '{"missing": [], "ahead": null}';
BEGIN
    SELECT * INTO v_sample FROM livewell.find_sample('outbox', v_now);
    IF v_sample.wanted THEN
        v_sample.value := livewell.sample_outbox() || jsonb_build_object('at', v_now);
        v_sample.at := v_now;
        PERFORM livewell.keep_sample('outbox', v_now, v_sample.value);
    END IF;
    IF EXISTS (SELECT FROM livewell.event_topic) THEN
        v_days := livewell.describe_event_days(v_now);
    END IF;
    RETURN jsonb_build_object(
        'how', v_sample.value ->> 'how', 'sampled_at', v_sample.at,
        'sample_age_seconds', extract(epoch FROM v_now - v_sample.at)::float8,
        'sampled', '["waiting", "aside", "oldest_seconds", "dead", "dead_reasons", "tenants",
            "claims_until_turn"]'::jsonb,
        'sinks', livewell.describe_sinks(v_sample.value, v_now),
        'relays', livewell.list_relay_states(v_now),
        'tenants', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'sink', s.name, 'tenant', c ->> 1, 'number', (c ->> 2)::bigint,
                'lag_seconds', extract(epoch FROM v_now - (c ->> 3)::timestamptz)::float8
            ) ORDER BY (c ->> 2)::bigint), '[]')
            FROM jsonb_array_elements(v_sample.value -> 'tenants') AS c
            JOIN livewell.event_sink s ON s.id = (c ->> 0)::smallint
            WHERE EXISTS (
                SELECT FROM livewell.event_delivery d
                WHERE d.number = (c ->> 2)::bigint AND d.sink = s.id
            )
        ),
        'days', v_days
    );
END
$$;
COMMENT ON FUNCTION livewell.state_outbox IS
    'Sinks, relays, lag and dead letters of the outbox, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_outbox FROM PUBLIC;
