-- What waits at each sink, since when and of whom, and its dead letters: counted up to 5,000 rows of
-- a sink, estimated from some pages of the tables beyond.
--
-- Called by: state_outbox, at most every ten seconds.
-- Index:     event_delivery_ready_idx, event_delivery_aside_idx, dead_event_group_idx, event_pkey,
--            and those of list_sink_heads and count_claims_until_turn.
-- Cost:      5,000 rows of each of three indexes for a sink, and about 1,000 pages of each table
--            in all, whatever they hold. Nine sinks that are all far behind, with 460,000
--            deliveries: 0.13 to 0.3 s on a busy machine, and 2 to 9 ms while the sample is kept.
-- REPEATABLE: the same pages each time, so that they are in memory and a graph does not jump.
CREATE OR REPLACE FUNCTION livewell.sample_outbox()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    c_rows      CONSTANT integer := 5000;
    c_pages     CONSTANT integer := 1000;
    c_tenants   CONSTANT integer := 10;
    v_exact     boolean := true;
    v_percent   float8;
    v_waiting   jsonb;
    v_dead      jsonb;
    v_heads     jsonb;
    v_tenants   jsonb;
    v_turns     jsonb;
BEGIN
    WITH counted AS MATERIALIZED (
        SELECT s.id, r.n AS ready, a.n AS aside
        FROM (SELECT o.id FROM livewell.event_sink o ORDER BY o.id LIMIT 100) s
        CROSS JOIN LATERAL (
            SELECT count(*) AS n
            FROM (
                SELECT FROM livewell.event_delivery d
                WHERE d.sink = s.id AND NOT d.aside LIMIT c_rows
            ) x
        ) r
        CROSS JOIN LATERAL (
            SELECT count(*) AS n
            FROM (
                SELECT FROM livewell.event_delivery d WHERE d.sink = s.id AND d.aside LIMIT c_rows
            ) x
        ) a
    )
    SELECT coalesce(jsonb_agg(jsonb_build_array(c.id, c.ready, c.aside)), '[]'),
        coalesce(bool_and(c.ready < c_rows AND c.aside < c_rows), true)
    INTO v_waiting, v_exact
    FROM counted c;
    IF NOT v_exact THEN
        SELECT p.percent INTO v_percent
        FROM livewell.table_pages('livewell.event_delivery', c_pages) p;
        -- A sink that could be counted stays counted.
        SELECT jsonb_agg(jsonb_build_array(
            c ->> 0,
            CASE WHEN (c ->> 1)::bigint < c_rows THEN (c ->> 1)::bigint
                ELSE greatest(c_rows, coalesce(e.ready, 0)) END,
            CASE WHEN (c ->> 2)::bigint < c_rows THEN (c ->> 2)::bigint
                ELSE greatest(c_rows, coalesce(e.aside, 0)) END))
        INTO v_waiting
        FROM jsonb_array_elements(v_waiting) AS c
        LEFT JOIN (
            SELECT d.sink, round(count(*) FILTER (WHERE NOT d.aside) * 100 / v_percent) AS ready,
                round(count(*) FILTER (WHERE d.aside) * 100 / v_percent) AS aside
            FROM livewell.event_delivery d TABLESAMPLE SYSTEM (v_percent) REPEATABLE (7601)
            GROUP BY d.sink
        ) e ON e.sink = (c ->> 0)::smallint;
    END IF;
    SELECT coalesce(jsonb_agg(jsonb_build_array(g.sink, g.reason, g.n)), '[]') INTO v_dead
    FROM livewell.count_dead_events(c_rows, c_pages) g;
    WITH head AS MATERIALIZED (
        SELECT h.* FROM livewell.list_sink_heads() h
    ), oldest AS (
        SELECT DISTINCT ON (h.sink) h.* FROM head h ORDER BY h.sink, h.number
    ), worst AS (
        SELECT h.* FROM head h ORDER BY h.number LIMIT c_tenants
    )
    SELECT (
            SELECT jsonb_agg(jsonb_build_array(o.sink, o.number, e.created_at, o.whole))
            FROM oldest o
            JOIN livewell.event e ON e.number = o.number AND e.day = o.day
        ), (
            SELECT jsonb_agg(
                jsonb_build_array(w.sink, e.tenant, w.number, e.created_at) ORDER BY w.number
            )
            FROM worst w
            JOIN livewell.event e ON e.number = w.number AND e.day = w.day
        ), v_exact AND coalesce((SELECT bool_and(o.whole) FROM oldest o), true)
    INTO v_heads, v_tenants, v_exact;
    SELECT coalesce(jsonb_agg(jsonb_build_array(s.id, t.claims, t.whole)), '[]') INTO v_turns
    FROM (SELECT o.id FROM livewell.event_sink o ORDER BY o.id LIMIT 100) s
    CROSS JOIN LATERAL livewell.count_claims_until_turn(s.id) t;
    RETURN jsonb_build_object(
        'how', CASE WHEN v_exact THEN 'exact' ELSE 'estimated' END, 'waiting', v_waiting,
        'dead', v_dead, 'heads', coalesce(v_heads, '[]'), 'tenants', coalesce(v_tenants, '[]'),
        'turns', v_turns
    );
END
$$;
COMMENT ON FUNCTION livewell.sample_outbox IS
    'What waits at each sink and of whom, from a bounded number of rows and pages.';
REVOKE ALL ON FUNCTION livewell.sample_outbox FROM PUBLIC;
