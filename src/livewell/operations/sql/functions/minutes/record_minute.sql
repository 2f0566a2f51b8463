-- Keep the figures of this minute; 0 if another worker has kept them already.
--
-- Called by: the duty livewell.minutes, every minute.
-- Index:     state_minute_pkey.
-- figures:   fresh and keys count followed keys, viewed_fresh and viewed weigh them by viewers;
--            due: keys that wait for a refresh; waiting, running, dead: jobs; done and failed: jobs
--            that ended in a minute, mean of the last five.
CREATE OR REPLACE FUNCTION livewell.record_minute()
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_minute    timestamptz := date_trunc('minute', livewell.now());
    v_state     jsonb;
    v_figures   jsonb;
BEGIN
    IF EXISTS (SELECT FROM livewell.state_minute m WHERE m.minute = v_minute) THEN
        RETURN 0;
    END IF;
    v_state := livewell.system_state();
    SELECT jsonb_build_object(
        'viewers', v_state #> '{refresh,viewers}',
        'keys', sum((k.value)::bigint) FILTER (WHERE k.key <> 'parked'),
        'fresh', sum((k.value)::bigint) FILTER (WHERE k.key IN ('fresh', 'unverifiable')))
    INTO v_figures
    FROM jsonb_path_query(v_state, 'lax $.refresh.types[*].keys') AS t
    CROSS JOIN LATERAL jsonb_each_text(t) AS k;
    v_figures := v_figures || (
        SELECT jsonb_build_object(
            'viewed', sum((k.value)::bigint),
            'viewed_fresh', sum((k.value)::bigint) FILTER (WHERE k.key IN ('fresh', 'unverifiable')))
        FROM jsonb_path_query(v_state, 'lax $.refresh.types[*].viewed') AS t
        CROSS JOIN LATERAL jsonb_each_text(t) AS k);
    v_figures := v_figures || (
        SELECT jsonb_build_object(
            'waiting', sum((q ->> 'ready')::bigint + (q ->> 'delayed')::bigint + (q ->> 'held')::bigint),
            'running', sum((q ->> 'running')::bigint), 'dead', sum((q ->> 'dead')::bigint),
            'done', sum((q ->> 'done_per_minute')::float8),
            'failed', sum((q ->> 'other_per_minute')::float8))
        FROM jsonb_path_query(v_state, 'lax $.queue.queues[*]') AS q);
    v_figures := v_figures || (
        SELECT jsonb_build_object('due', coalesce(sum((d ->> 'keys')::bigint), 0))
        FROM jsonb_path_query(v_state, 'lax $.refresh.due[*]') AS d);
    INSERT INTO livewell.state_minute (minute, figures) VALUES (v_minute, v_figures)
    ON CONFLICT (minute) DO NOTHING;
    RETURN 1;
END
$$;
COMMENT ON FUNCTION livewell.record_minute IS
    'Keeps a few figures of the system state for this minute.';
REVOKE ALL ON FUNCTION livewell.record_minute FROM PUBLIC;
