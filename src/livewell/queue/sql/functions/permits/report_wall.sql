-- A call of this queue has met a bandwidth wall: open the breaker of its credential, before the
-- job's own end can say so.
--
-- Called by: a worker that has seen a wall, before it claims or renews (limits/walls.py). The end
--            of the job says it again, which then moves nothing.
CREATE OR REPLACE FUNCTION livewell.report_wall(p_queue text, p_credential text, p_fence bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_limiter   text := (SELECT q.limiter FROM livewell.queue q WHERE q.name = p_queue);
BEGIN
    PERFORM FROM livewell.limiter l WHERE l.name = v_limiter FOR NO KEY UPDATE;
    IF FOUND THEN
        PERFORM livewell.book_calls(
            v_limiter, p_credential, ARRAY[p_fence], ARRAY['wall'], s.last_value + 16383
        )
        FROM livewell.fence_seq s;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.report_wall IS
    'Opens the breaker for a bandwidth wall that a worker has met.';
REVOKE ALL ON FUNCTION livewell.report_wall FROM PUBLIC;
