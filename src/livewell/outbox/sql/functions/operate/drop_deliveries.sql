-- Delete a page of what waits for a sink.
--
-- Called by: remove_sink, prune_outbox.
-- Index:     event_delivery_ready_idx, event_delivery_aside_idx.
CREATE OR REPLACE FUNCTION livewell.drop_deliveries(p_sink smallint, p_n integer)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_numbers   bigint[];
BEGIN
    v_numbers := ARRAY(
        SELECT d.number FROM livewell.event_delivery d
        WHERE d.sink = p_sink AND NOT d.aside LIMIT p_n
    );
    v_numbers := v_numbers || ARRAY(
        SELECT d.number FROM livewell.event_delivery d
        WHERE d.sink = p_sink AND d.aside LIMIT p_n - cardinality(v_numbers)
    );
    DELETE FROM livewell.event_delivery d WHERE d.sink = p_sink AND d.number = ANY (v_numbers);
    RETURN cardinality(v_numbers);
END
$$;
COMMENT ON FUNCTION livewell.drop_deliveries IS
    'Deletes up to so many deliveries of a sink; answers how many.';
REVOKE ALL ON FUNCTION livewell.drop_deliveries FROM PUBLIC;
