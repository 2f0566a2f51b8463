-- What has changed of many exports and batches, of many users; a row for each that has.
--
-- Called by: the reader of each server that has streams, twice a second and when it is nudged.
-- Each is read as its own user sees it: a follower of another one's id is answered with nothing.
-- gone: there is none, or none any more.
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.follow_exports(
    p_users text[], p_ids uuid[], p_after bigint[], p_batches boolean[]
)
RETURNS TABLE (place integer, document jsonb)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_seq   bigint;
BEGIN
    FOR v_place IN 1 .. least(cardinality(p_ids), 1000) LOOP
        PERFORM livewell.enter_export_user(p_users[v_place]);
        IF p_batches[v_place] THEN
            SELECT sum(e.seq) INTO v_seq FROM livewell.export_member m
            JOIN livewell.export e ON e.id = m.export_id
            WHERE m.batch_id = p_ids[v_place] AND m.user_id = p_users[v_place];
        ELSE
            SELECT e.seq INTO v_seq FROM livewell.export e
            WHERE e.id = p_ids[v_place] AND e.user_id = p_users[v_place];
        END IF;
        CONTINUE WHEN v_seq <= p_after[v_place];
        place := v_place;
        IF p_batches[v_place] THEN
            document := livewell.show_export_batch(
                p_users[v_place], p_ids[v_place], p_after[v_place]);
        ELSE
            document := livewell.show_export(p_users[v_place], p_ids[v_place], p_after[v_place]);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.follow_exports IS 'New steps of the exports and batches that are followed.';
REVOKE ALL ON FUNCTION livewell.follow_exports FROM PUBLIC;
