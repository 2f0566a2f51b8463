-- Dead letters by sink and reason: counted up to p_rows of a sink, estimated from p_pages pages of
-- the table beyond.
--
-- Called by: sample_outbox.
-- Index:     dead_event_group_idx.
CREATE OR REPLACE FUNCTION livewell.count_dead_events(p_rows integer, p_pages integer)
RETURNS TABLE (sink smallint, reason text, n bigint)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_large     smallint[];
    v_percent   float8;
BEGIN
    v_large := ARRAY(
        SELECT s.id FROM livewell.event_sink s
        WHERE p_rows <= (
            SELECT count(*)
            FROM (SELECT FROM livewell.dead_event d WHERE d.sink = s.id LIMIT p_rows) x
        )
    );
    RETURN QUERY
    SELECT d.sink, d.reason::text, count(*)
    FROM livewell.event_sink s
    JOIN livewell.dead_event d ON d.sink = s.id
    WHERE s.id <> ALL (v_large)
    GROUP BY d.sink, d.reason;
    IF cardinality(v_large) > 0 THEN
        SELECT p.percent INTO v_percent
        FROM livewell.table_pages('livewell.dead_event', p_pages) p;
        RETURN QUERY
        SELECT d.sink, d.reason::text, round(count(*) * 100 / v_percent)::bigint
        FROM livewell.dead_event d TABLESAMPLE SYSTEM (v_percent) REPEATABLE (7601)
        WHERE d.sink = ANY (v_large)
        GROUP BY d.sink, d.reason;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.count_dead_events IS
    'Dead letters of the outbox by sink and reason, from a bounded number of rows and pages.';
REVOKE ALL ON FUNCTION livewell.count_dead_events FROM PUBLIC;
