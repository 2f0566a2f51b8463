-- Delete what is no longer needed: old dead letters, counts, ended replays, and what waits for a sink
-- that is gone.
--
-- Called by: housekeeping, hourly, until it answers 0.
-- A dead letter that parks its key stays: what is behind it goes only when a person says so.
CREATE OR REPLACE FUNCTION livewell.prune_outbox(p_dead_days integer, p_stat_days integer, p_n integer)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_sink  smallint;
    v_n     bigint;
    v_gone  bigint;
BEGIN
    IF p_dead_days < 30 OR p_stat_days < 1 THEN
        RAISE EXCEPTION 'dead letters are kept at least 30 days and counts at least 1, not % and %',
            p_dead_days, p_stat_days
            USING ERRCODE = 'LW003';
    END IF;
    SELECT coalesce(sum(livewell.discard_dead_events(o.name, o.numbers)), 0) INTO v_gone
    FROM (
        SELECT s.name, array_agg(c.number) AS numbers
        FROM (
            SELECT d.sink, d.number FROM livewell.dead_event d
            WHERE d.died_at < v_now - p_dead_days * interval '1 day' AND NOT d.parks
            ORDER BY d.died_at LIMIT p_n
        ) c
        JOIN livewell.event_sink s ON s.id = c.sink
        GROUP BY s.name
    ) o;
    DELETE FROM livewell.event_stat t
    WHERE (t.sink, t.minute, t.outcome) IN (
        SELECT o.sink, o.minute, o.outcome FROM livewell.event_stat o
        WHERE o.minute < v_now - p_stat_days * interval '1 day' LIMIT p_n
    );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_gone := v_gone + v_n;
    DELETE FROM livewell.event_replay y
    WHERE y.id IN (
        SELECT o.id FROM livewell.event_replay o
        WHERE o.ended_at < v_now - p_stat_days * interval '1 day' LIMIT p_n
    );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_gone := v_gone + v_n;
    FOR v_sink IN
        WITH RECURSIVE walk (sink) AS (
            (SELECT d.sink FROM livewell.event_delivery d WHERE NOT d.aside ORDER BY d.sink LIMIT 1)
            UNION ALL
            SELECT (
                SELECT d.sink FROM livewell.event_delivery d
                WHERE NOT d.aside AND d.sink > w.sink ORDER BY d.sink LIMIT 1
            )
            FROM walk w WHERE w.sink IS NOT NULL
        )
        SELECT w.sink FROM walk w
        WHERE w.sink IS NOT NULL
            AND NOT EXISTS (SELECT FROM livewell.event_sink s WHERE s.id = w.sink)
    LOOP
        v_gone := v_gone + livewell.drop_deliveries(v_sink, p_n);
    END LOOP;
    RETURN v_gone;
END
$$;
COMMENT ON FUNCTION livewell.prune_outbox IS
    'Deletes old dead letters, counts and replays, and what waits for no sink; answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_outbox FROM PUBLIC;
