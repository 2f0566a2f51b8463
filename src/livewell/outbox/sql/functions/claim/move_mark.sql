-- Where to go on looking for ready events, while looking from the beginning is slow.
--
-- Called by: claim_events, when a look was slow, and while there is a mark.
-- Index:     event_delivery_pkey.
-- p_mark:    where this look began: 0 is the beginning. p_ready: what it found; p_seconds: in what
--            time.
-- While somebody holds an old snapshot, the index entries of delivered events cannot be removed, and
-- each look walks over all of them. The mark is the number below which nothing is ready. With it
-- 50,000 events went at 0.55 of their pace after a minute of load under such a snapshot; without,
-- at 0.03.
-- No event is passed over: the mark rises only to numbers whose transactions have all ended, so a
-- late commit is above it. A transaction has its id before it draws a number (emit_event). We note
-- the last number drawn, and in a later turn our own id: it is above the ids of all that had drawn
-- up to that number. Why not the end of a snapshot: that is the newest id that has ended, plus one,
-- and the ids of open transactions may be higher.
-- Deliveries that are made of old events end the mark (feed_replay). A look from the beginning comes
-- ten times as long after the last one as that took, and after a minute at most.
CREATE OR REPLACE FUNCTION livewell.move_mark(
    p_relay livewell.relay, p_shards smallint[], p_mark bigint, p_ready bigint[], p_seconds float8
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_own       CONSTANT xid8 := pg_current_xact_id();
    v_settled   boolean;
    v_from      bigint := 0;
    v_first     bigint;
BEGIN
    IF p_mark > 0 AND v_now < p_relay.mark_moved_at + interval '100 milliseconds' THEN
        RETURN;
    END IF;
    v_settled := pg_snapshot_xmin(pg_current_snapshot()) >= coalesce(p_relay.settled_xid, '0');
    IF p_relay.mark_shards = p_shards THEN
        v_from := p_relay.mark;
        IF p_mark = 0 AND cardinality(p_ready) > 0 THEN
            v_from := least(v_from, (SELECT min(n) - 1 FROM unnest(p_ready) AS n));
        END IF;
    END IF;
    -- In a statement after that: who has ended is visible.
    IF v_settled AND p_relay.settled_xid IS NOT NULL THEN
        SELECT d.number INTO v_first FROM livewell.event_delivery d
        WHERE d.sink = p_relay.sink
            AND d.number > v_from
            AND d.number <= p_relay.settled_number
            AND NOT d.aside
            AND d.shard = ANY (p_shards)
        ORDER BY d.number LIMIT 1;
        v_from := greatest(v_from, coalesce(v_first - 1, p_relay.settled_number));
    END IF;
    UPDATE livewell.relay r
    SET mark = v_from, mark_shards = p_shards, mark_moved_at = v_now,
        mark_until = CASE
            WHEN p_mark > 0 THEN r.mark_until
            WHEN p_seconds <= 0.002 + 0.000006 * cardinality(p_ready) THEN NULL
            ELSE v_now + least(greatest(10 * p_seconds, 0.5), 60) * interval '1 second'
        END,
        settled_number = CASE WHEN v_settled THEN r.drawn_number ELSE r.settled_number END,
        settled_xid = CASE WHEN v_settled THEN v_own ELSE r.settled_xid END,
        drawn_number = coalesce(pg_sequence_last_value('livewell.event_number_seq'), 0)
    WHERE r.id = p_relay.id;
END
$$;
COMMENT ON FUNCTION livewell.move_mark IS
    'Notes the number below which nothing is ready, while looking from the beginning is slow.';
REVOKE ALL ON FUNCTION livewell.move_mark FROM PUBLIC;
