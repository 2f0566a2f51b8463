-- How many events a replay may feed now: what its rate has allowed since its last turn, while little
-- else waits for the sink.
--
-- Called by: feed_replay.
-- Index:     event_delivery_ready_idx: up to 1,000 live events and what was fed and still waits.
-- A thousand live events that are ready, or five thousand replayed ones, are a sink that is busy.
CREATE OR REPLACE FUNCTION livewell.replay_room(p_replay livewell.event_replay)
RETURNS integer
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_replay    CONSTANT integer := livewell.replay_tenant();
    v_live      bigint;
    v_waiting   bigint;
BEGIN
    SELECT count(*) INTO v_waiting FROM (
        SELECT FROM livewell.event_delivery d
        WHERE d.sink = p_replay.sink
            AND d.shard = ANY (ARRAY(SELECT i::smallint FROM generate_series(0, 63) AS i))
            AND d.tenant_hash = v_replay
            AND NOT d.aside
        LIMIT 5000
    ) c;
    SELECT count(*) INTO v_live FROM (
        SELECT FROM livewell.event_delivery d
        WHERE d.sink = p_replay.sink AND NOT d.aside AND d.tenant_hash <> v_replay
        LIMIT 1000
    ) c;
    IF v_live >= 1000 THEN
        RETURN 0;
    END IF;
    RETURN least(
        5000 - v_waiting,
        floor(
            p_replay.rate * least(
                extract(epoch FROM v_now - p_replay.fed_at), greatest(1, 1 / p_replay.rate)
            )
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.replay_room IS 'How many events a replay may feed now.';
REVOKE ALL ON FUNCTION livewell.replay_room FROM PUBLIC;
