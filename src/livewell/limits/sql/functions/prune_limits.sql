-- Forget usage that no budget looks at any more, and yesterday's settled fences; a bounded page per
-- call.
--
-- Called by: worker, hourly, until it answers 0.
-- Index:     usage_settled_at_idx, limiter_failing_failed_idx, primary keys.
CREATE OR REPLACE FUNCTION livewell.prune_limits(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_n     integer;
    v_all   integer := 0;
BEGIN
    DELETE FROM livewell.usage_settled s
    WHERE s.fence = ANY (
        ARRAY(
            SELECT o.fence FROM livewell.usage_settled o
            WHERE o.at < v_now - interval '1 day'
            ORDER BY o.at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_all = ROW_COUNT;
    DELETE FROM livewell.limiter_usage u WHERE u.since < v_now - interval '400 days';
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;
    DELETE FROM livewell.limiter_calls k WHERE k.since < v_now - interval '1 day';
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;
    -- A key that goes on failing is tried every six hours at least, and no breaker looks back
    -- longer than a day.
    DELETE FROM livewell.limiter_failing f
    WHERE (f.limiter, f.key, f.credential) IN (
        SELECT o.limiter, o.key, o.credential FROM livewell.limiter_failing o
        WHERE o.failed_at < v_now - interval '1 day'
        ORDER BY o.failed_at LIMIT p_limit
    );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;
    DELETE FROM livewell.limiter_grant g WHERE g.at < v_now - interval '2 days';
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;
    DELETE FROM livewell.limiter_flight f WHERE f.at < v_now - interval '2 days';
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_all + v_n;
END
$$;
COMMENT ON FUNCTION livewell.prune_limits IS
    'Removes limiter records that nothing looks at any more; answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_limits FROM PUBLIC;
