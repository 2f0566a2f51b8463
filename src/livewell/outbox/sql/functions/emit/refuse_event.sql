-- Say what is wrong with an event, or nothing if it only has escapes that are fine.
--
-- Called by: emit_event, emit_events, for an event that may be wrong; emit_dated_event, for all.
-- Types are qualified: functions that run with their owner's rights call it.
CREATE OR REPLACE FUNCTION livewell.refuse_event(
    p_topic text, p_payload json, p_key text, p_tenant text, p_trace text
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_max   integer;
    v_flaw  pg_catalog.text;
BEGIN
    SELECT t.payload_bytes_max INTO v_max FROM livewell.event_topic t WHERE t.name = p_topic;
    IF v_max IS NULL THEN
        RAISE EXCEPTION 'topic % is not declared; declare it with app.topic(''%''), or with: '
            'livewell outbox topics declare %', p_topic, p_topic, p_topic
            USING ERRCODE = 'LW003';
    ELSIF p_payload IS NULL THEN
        RAISE EXCEPTION 'event of topic %: it has no payload; the JSON null is one', p_topic
            USING ERRCODE = 'LW005';
    ELSIF octet_length(p_payload::pg_catalog.text) > v_max THEN
        RAISE EXCEPTION 'event of topic %: its payload has % bytes; % are allowed '
            '(payload_bytes_max of the topic)', p_topic, octet_length(p_payload::pg_catalog.text), v_max
            USING ERRCODE = 'LW005';
    ELSIF octet_length(p_key) > 512 OR octet_length(p_tenant) > 200 OR octet_length(p_trace) > 200
    THEN
        RAISE EXCEPTION 'event of topic %: its key has % bytes (512 are allowed), its tenant % '
            '(200), its trace % (200)', p_topic, coalesce(octet_length(p_key), 0),
            octet_length(p_tenant), coalesce(octet_length(p_trace), 0)
            USING ERRCODE = 'LW003';
    END IF;
    v_flaw := livewell.find_bad_escape(p_payload);
    IF v_flaw IS NOT NULL THEN
        RAISE EXCEPTION 'event of topic %: its payload has an escape that stands for no character: '
            '%', p_topic, v_flaw
            USING ERRCODE = 'LW005';
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.refuse_event IS 'Raises what is wrong with a new event, if anything.';
REVOKE ALL ON FUNCTION livewell.refuse_event FROM PUBLIC;
