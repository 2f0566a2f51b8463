-- Delete acts that ended long ago, a bounded page per call.
--
-- Called by: worker, hourly, until it answers 0.
-- Index:     bulk_act_ended_idx.
CREATE OR REPLACE FUNCTION livewell.prune_bulk_acts(p_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_n     integer;
BEGIN
    DELETE FROM livewell.bulk_act b
    WHERE b.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.bulk_act o
            WHERE o.ended_at < v_now - greatest(p_days, 1) * interval '1 day'
            ORDER BY o.ended_at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.prune_bulk_acts IS
    'Removes acts that ended long ago; answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_bulk_acts FROM PUBLIC;
