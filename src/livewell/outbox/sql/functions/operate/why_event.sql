-- Why an event has not arrived at a sink: the first thing that stands in its way, and the next step.
--
-- Called by: OutboxAdmin.why.
-- p_sink:    NULL: a row for every sink, those that stand still first.
-- No row:    there is no such event, or no such sink.
CREATE OR REPLACE FUNCTION livewell.why_event(p_id text, p_sink text)
RETURNS TABLE (sink text, code text, words text, next text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
    v_event record;
    v_s     record;
BEGIN
    SELECT e.* INTO v_event FROM livewell.show_event(p_id) e;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR v_s IN
        SELECT t.*, k.name AS sink_name, k.outside, k.paused_at, k.attempts, k.topics,
            (SELECT count(*) FROM livewell.relay r WHERE r.sink = k.id AND r.expires_at > v_now)
                AS relays,
            (
                SELECT CASE WHEN bool_and(r.away_since IS NOT NULL) THEN max(r.away_reason) END
                FROM livewell.relay r WHERE r.sink = k.id AND r.expires_at > v_now
            ) AS away,
            (
                SELECT h.relay FROM livewell.relay_shard h
                WHERE h.sink = k.id AND h.shard = t.shard
            ) AS owner,
            EXISTS (
                SELECT FROM livewell.event_route o WHERE o.sink = k.id AND o.topic = v_event.topic
            ) AS routed
        FROM livewell.list_event_states(v_event.number, v_event.day, p_sink) t
        JOIN livewell.event_sink k ON k.name = t.sink
        ORDER BY t.state IN ('delivered', 'not routed'), t.sink
    LOOP
        sink := v_s.sink;
        SELECT w.code, w.words, w.next INTO code, words, next
        FROM livewell.why_delivery(
            v_event.id, v_event.topic, v_s.sink, v_s.state, v_s.at, v_s.relay_name, v_s.attempt,
            v_s.attempts, v_s.behind, v_s.block_state, v_s.retry_at, v_s.reason, v_s.detail,
            v_s.outside, v_s.paused_at, v_s.relays, v_s.away, v_s.owner, v_s.routed
        ) w;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.why_event IS
    'Why an event has not arrived at a sink, in words, with the next step.';
REVOKE ALL ON FUNCTION livewell.why_event FROM PUBLIC;
