-- One page of a replay: the next events of its day that match become deliveries once more.
--
-- Called by: the duty livewell.outbox.replay, every second, for each replay that runs.
-- Index:     event_pkey; p_looks events are looked at, at most.
-- An event that still waits for the sink is not given a second delivery, and a dead letter is left to
-- whoever redrives it: both count as skipped.
-- Replayed events have lanes of their own: in the order of each key among themselves, and one that
-- fails holds up nothing that is new.
-- Answer:    how many were fed; NULL: there is nothing more to do.
CREATE OR REPLACE FUNCTION livewell.feed_replay(p_replay bigint, p_looks integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_now       timestamptz;
    v_y         livewell.event_replay;
    v_room      integer;
    v_looks     integer;
    v_seen      bigint;
    v_far       bigint;
    v_matched   bigint;
    v_fed       bigint;
BEGIN
    SELECT y.* INTO v_y FROM livewell.event_replay y
    WHERE y.id = p_replay AND y.state = 'running' FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_now := livewell.now();
    v_room := livewell.replay_room(v_y);
    IF v_room < 1 THEN
        RETURN 0;
    END IF;
    -- Without a key most of what is looked at matches.
    v_looks := CASE WHEN v_y.key IS NULL THEN least(p_looks, greatest(1000, v_room * 10)) ELSE p_looks END;
    WITH page AS MATERIALIZED (
        SELECT e.number, e.created_at, e.topic, e.tenant, e.key
        FROM livewell.event e
        WHERE e.day = v_y.day AND e.number > v_y.place
        ORDER BY e.number LIMIT v_looks
    ), wanted AS MATERIALIZED (
        SELECT p.number, o.lane
        FROM page p
        JOIN livewell.event_route r ON r.topic = p.topic AND r.sink = v_y.sink
        JOIN livewell.event_sink s ON s.id = v_y.sink
        CROSS JOIN LATERAL (
            SELECT CASE WHEN s.ordered AND p.key IS NOT NULL
                THEN hashtextextended(p.key, hashtextextended(p.tenant, 1)) ELSE p.number
            END AS lane
        ) o
        WHERE p.created_at >= v_y.from_at
            AND p.created_at < v_y.to_at
            AND (v_y.topic IS NULL OR p.topic = v_y.topic)
            AND (v_y.tenant IS NULL OR p.tenant = v_y.tenant)
            AND (v_y.key IS NULL OR p.key = v_y.key)
        ORDER BY p.number LIMIT v_room
    ), fed AS (
        INSERT INTO livewell.event_delivery (
            number, key_hash, day, tenant_hash, sink, shard, replay
        )
        SELECT w.number, w.lane, v_y.day, livewell.replay_tenant(), v_y.sink, w.lane & 63, true
        FROM wanted w
        WHERE NOT EXISTS (
            SELECT FROM livewell.dead_event x WHERE x.number = w.number AND x.sink = v_y.sink
        )
        ORDER BY w.number
        ON CONFLICT (number, sink) DO NOTHING
        RETURNING number
    ), far AS (
        -- All matches were taken: what was looked at is done. Otherwise the last match is the place.
        SELECT CASE WHEN (SELECT count(*) FROM wanted) < v_room
            THEN (SELECT max(p.number) FROM page p) ELSE (SELECT max(w.number) FROM wanted w)
        END AS number
    )
    SELECT (SELECT count(*) FROM page p WHERE p.number <= f.number), f.number,
        (SELECT count(*) FROM wanted), (SELECT count(*) FROM fed)
    INTO v_seen, v_far, v_matched, v_fed
    FROM far f;
    IF v_fed > 0 THEN
        -- Old numbers are ready again, so nobody may begin behind them (move_mark). Last: who claims
        -- now does not see them yet, and is waited for.
        PERFORM FROM livewell.relay r WHERE r.sink = v_y.sink ORDER BY r.id FOR NO KEY UPDATE;
        UPDATE livewell.relay r SET mark = 0, mark_until = NULL WHERE r.sink = v_y.sink;
    END IF;
    UPDATE livewell.event_replay y
    SET place = coalesce(v_far, y.place), looked = y.looked + v_seen, fed = y.fed + v_fed,
        skipped = y.skipped + v_matched - v_fed,
        fed_at = CASE WHEN v_matched > 0 THEN v_now ELSE y.fed_at END
    WHERE y.id = p_replay;
    -- A day is over when there was less to look at than could be; a step goes over one day at most.
    IF v_seen < v_looks AND v_matched < v_room THEN
        UPDATE livewell.event_replay y
        SET day = y.day + 1, place = 0,
            state = (CASE WHEN y.day >= (y.to_at AT TIME ZONE 'UTC')::date
                THEN 'done' ELSE 'running' END)::livewell.replay_state,
            ended_at = CASE WHEN y.day >= (y.to_at AT TIME ZONE 'UTC')::date THEN v_now END
        WHERE y.id = p_replay;
    END IF;
    RETURN v_fed;
END
$$;
COMMENT ON FUNCTION livewell.feed_replay IS
    'Makes deliveries of the next events of a replay; answers how many.';
REVOKE ALL ON FUNCTION livewell.feed_replay FROM PUBLIC;
