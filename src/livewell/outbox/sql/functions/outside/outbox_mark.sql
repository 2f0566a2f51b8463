-- Finish claimed events of a token with one verdict, and let go of shards of which it holds nothing.
--
-- Called by: outbox_mark_delivered, outbox_mark_failed.
CREATE OR REPLACE FUNCTION livewell.outbox_mark(
    p_token uuid, p_ids bigint[], p_verdict text, p_detail text
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz;
    v_relay livewell.relay;
    v_rest  bigint[];
    v_n     integer;
    v_done  integer := 0;
BEGIN
    -- Once each: the answer counts events, and a NULL would make nothing of what is left.
    p_ids := ARRAY(SELECT DISTINCT n FROM unnest(p_ids) AS n WHERE n IS NOT NULL);
    FOR v_relay IN
        SELECT r.* FROM livewell.relay r WHERE r.token = p_token ORDER BY r.id FOR NO KEY UPDATE
    LOOP
        v_now := livewell.now();
        v_rest := ARRAY(
            SELECT n FROM livewell.event_flight f CROSS JOIN unnest(f.numbers) AS n
            WHERE f.relay = v_relay.id AND n <> ALL (p_ids)
        );
        v_n := cardinality(p_ids);
        v_done := v_done + livewell.finish_events(
            v_relay.sink, v_relay.id, p_ids, array_fill(p_verdict, ARRAY[v_n]),
            array_fill(p_detail, ARRAY[v_n]), array_fill(NULL::float8, ARRAY[v_n]), v_rest
        );
        UPDATE livewell.relay r
        SET batch_seconds = extract(epoch FROM v_now - r.renewed_at) / greatest(v_n, 1)
        WHERE r.id = v_relay.id;
        PERFORM livewell.free_idle_shards(v_relay.sink, v_relay.id);
    END LOOP;
    RETURN v_done;
END
$$;
COMMENT ON FUNCTION livewell.outbox_mark IS
    'Finishes claimed events of a token; answers how many of them it still held.';
REVOKE ALL ON FUNCTION livewell.outbox_mark FROM PUBLIC;
