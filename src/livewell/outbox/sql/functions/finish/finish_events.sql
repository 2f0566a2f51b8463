-- Settle what a relay had in flight: delivered events leave, failed ones block their key, dead ones
-- become dead letters, the rest goes back.
--
-- Called by: exchange_events, outbox_claim, outbox_mark. The caller has locked the relay's row.
-- Only what is in the relay's flight is touched. Answer: how many of p_numbers that were.
CREATE OR REPLACE FUNCTION livewell.finish_events(
    p_sink smallint,
    p_relay bigint,
    p_numbers bigint[],
    p_verdicts text[],
    p_details text[],
    p_again float8[],
    p_sending bigint[]
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_flight    livewell.event_flight;
    v_flying    bigint[];
    v_sent      bigint[];
    v_keys      bigint[];
    v_n         integer;
    v_bad       integer;
    v_blocks    boolean;
BEGIN
    v_flight := livewell.lock_flight(p_relay);
    IF cardinality(v_flight.numbers) = 0 THEN
        RETURN 0;
    END IF;
    v_flying := v_flight.numbers;
    SELECT array_agg(g.number) FILTER (WHERE g.verdict = 'delivered'),
        count(*) FILTER (WHERE g.verdict <> 'delivered'), count(*)
    INTO v_sent, v_bad, v_n
    FROM unnest(p_numbers, p_verdicts) AS g (number, verdict)
    JOIN unnest(v_flying) AS f (number) ON f.number = g.number;
    v_blocks := EXISTS (SELECT FROM livewell.event_block b WHERE b.sink = p_sink);
    IF v_sent IS NOT NULL THEN
        WITH sent AS (
            DELETE FROM livewell.event_delivery d
            WHERE d.sink = p_sink AND d.number = ANY (v_sent)
            RETURNING d.number, d.day, d.key_hash
        ), kept AS (
            INSERT INTO livewell.event_sent (sink, day, block, relay, sent_at, places)
            SELECT p_sink, s.day, s.number >> 10, p_relay, v_now,
                array_agg((s.number & 1023)::smallint)
            FROM sent s GROUP BY s.day, s.number >> 10
        )
        SELECT array_agg(s.key_hash) INTO v_keys FROM sent s;
    END IF;
    IF v_blocks AND v_keys IS NOT NULL THEN
        UPDATE livewell.event_block b
        SET state = 'draining', retry_at = v_now, reason = NULL
        WHERE b.sink = p_sink AND b.key_hash = ANY (v_keys) AND b.state <> 'parked';
    END IF;
    p_sending := ARRAY(SELECT n FROM unnest(p_sending) AS n WHERE n = ANY (v_flying));
    IF v_bad > 0 THEN
        -- Behind an event that was not taken, nothing of its key may go on: it goes back.
        IF cardinality(p_sending) > 0 THEN
            WITH bad AS MATERIALIZED (
                SELECT d.key_hash, min(d.number) AS number
                FROM unnest(p_numbers, p_verdicts) AS g (number, verdict)
                JOIN unnest(v_flying) AS f (number) ON f.number = g.number
                JOIN livewell.event_delivery d ON d.number = g.number AND d.sink = p_sink
                WHERE g.verdict <> 'delivered'
                GROUP BY d.key_hash
            )
            SELECT coalesce(array_agg(d.number), '{}') INTO p_sending
            FROM livewell.event_delivery d
            LEFT JOIN bad b ON b.key_hash = d.key_hash
            WHERE d.sink = p_sink
                AND d.number = ANY (p_sending)
                AND d.number <= coalesce(b.number, d.number);
        END IF;
        PERFORM livewell.fail_events(p_sink, v_flying, p_numbers, p_verdicts, p_details, p_again);
    END IF;
    IF cardinality(p_sending) > 0 THEN
        UPDATE livewell.event_delivery d
        SET aside = true
        WHERE d.sink = p_sink AND d.number = ANY (p_sending) AND NOT d.aside;
        INSERT INTO livewell.event_block AS b (
            sink, key_hash, shard, state, number, retry_at, since
        )
        SELECT DISTINCT ON (d.key_hash)
            p_sink, d.key_hash, d.shard, 'sending'::livewell.block_state, d.number,
            'infinity'::timestamptz, v_now
        FROM livewell.event_delivery d
        WHERE d.sink = p_sink AND d.number = ANY (p_sending)
        ORDER BY d.key_hash, d.number
        ON CONFLICT (sink, key_hash) DO UPDATE
        SET state = 'sending', retry_at = 'infinity', number = excluded.number
        WHERE b.state <> 'parked';
    END IF;
    IF p_sending <> v_flying THEN
        PERFORM livewell.set_flight(v_flight, v_flight.since, p_sending);
    END IF;
    -- What had been on its way for long and was neither delivered nor failed.
    IF v_blocks THEN
        UPDATE livewell.event_block b
        SET state = 'draining', retry_at = v_now
        WHERE b.sink = p_sink
            AND b.retry_at = 'infinity'
            AND b.state = 'sending'
            AND b.number = ANY (v_flying)
            AND b.number <> ALL (p_sending);
    END IF;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.finish_events IS
    'Settles what a relay had in flight; answers how many of these events were its own.';
REVOKE ALL ON FUNCTION livewell.finish_events FROM PUBLIC;
