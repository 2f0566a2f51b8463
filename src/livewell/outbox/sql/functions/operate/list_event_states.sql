-- How far one event is at each sink, or at one.
--
-- Called by: OutboxAdmin.event; why_event.
-- Index:     event_delivery_pkey, dead_event_pkey, event_block_pkey, event_sent_block_idx (one probe
--            for each day), relay_sink_idx.
-- state:     waiting; blocked: it failed and is tried again at retry_at; set aside, behind the event
--            `behind`; in flight, with `relay` since `at`; dead at `at`; delivered at `at` by `relay`;
--            not routed: no delivery was ever made, or it is no longer known.
-- times:     how often it was delivered; more than once after a replay, or a death in between.
CREATE OR REPLACE FUNCTION livewell.list_event_states(
    p_number bigint, p_day date, p_sink text
)
RETURNS TABLE (
    sink text, state text, at timestamptz, relay bigint, relay_name text, attempt smallint,
    lost smallint, behind text, block_state text, retry_at timestamptz, reason text, detail text,
    replay boolean, times bigint, lane bigint, shard smallint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.name,
        CASE
            WHEN f.relay IS NOT NULL THEN 'in flight'
            WHEN d.aside AND b.number = p_number AND b.state = 'failed' THEN 'blocked'
            WHEN d.aside THEN 'set aside'
            WHEN d.number IS NOT NULL THEN 'waiting'
            WHEN x.number IS NOT NULL THEN 'dead'
            WHEN t.n > 0 THEN 'delivered'
            ELSE 'not routed'
        END,
        CASE
            WHEN f.relay IS NOT NULL THEN f.since
            WHEN d.aside THEN b.since
            WHEN d.number IS NOT NULL THEN NULL
            WHEN x.number IS NOT NULL THEN x.died_at
            ELSE t.sent_at
        END,
        coalesce(f.relay, CASE WHEN d.number IS NULL AND x.number IS NULL THEN t.relay END), k.name,
        coalesce(d.attempt, x.attempt), coalesce(d.lost, x.lost),
        CASE
            WHEN d.aside AND b.number <> p_number AND b.state <> 'draining'
            THEN livewell.event_id(b.number)
        END,
        CASE WHEN d.aside THEN b.state::text END,
        CASE WHEN d.aside THEN nullif(b.retry_at, 'infinity') END, x.reason,
        coalesce(x.detail, CASE WHEN d.aside THEN b.reason END), coalesce(d.replay, x.replay, false),
        t.n, coalesce(d.key_hash, x.key_hash), coalesce(d.shard, x.shard)
    FROM livewell.event_sink s
    LEFT JOIN livewell.event_delivery d ON d.number = p_number AND d.sink = s.id
    LEFT JOIN livewell.dead_event x ON x.number = p_number AND x.sink = s.id
    -- LIMIT: a join would read all blocks of the sink.
    LEFT JOIN LATERAL (
        SELECT k.* FROM livewell.event_block k
        WHERE k.sink = s.id AND k.key_hash = d.key_hash LIMIT 1
    ) b ON true
    LEFT JOIN LATERAL (
        SELECT r.id AS relay, g.since
        FROM livewell.relay r
        JOIN livewell.event_flight g ON g.relay = r.id
        WHERE r.sink = s.id AND d.number = ANY (g.numbers)
        LIMIT 1
    ) f ON true
    CROSS JOIN LATERAL (
        SELECT count(*) AS n, max(w.sent_at) AS sent_at,
            (array_agg(w.relay ORDER BY w.sent_at DESC))[1] AS relay
        FROM livewell.event_sent w
        WHERE w.sink = s.id
            AND w.day = p_day
            AND w.block = p_number >> 10
            AND (p_number & 1023)::smallint = ANY (w.places)
    ) t
    LEFT JOIN livewell.relay k ON k.id = coalesce(f.relay, t.relay)
    WHERE p_sink IS NULL OR s.name = p_sink
    ORDER BY s.name LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_event_states IS 'How far one event is at each sink.';
REVOKE ALL ON FUNCTION livewell.list_event_states FROM PUBLIC;
