-- Calls are no longer in flight: from here on they count for one window, from now if they were
-- answered, and otherwise from the last instant at which they can reach the upstream.
--
-- Called by: charge_jobs (every way a job can end), take_permits, book_call; the limiter's row is
--            locked by the caller.
-- p_answered: an answer came, or no call was made. Otherwise (a deadline, a broken connection, a
--             worker that died) the request may still be on its way.
-- Index:      limiter_flight_idx, limiter_grant_idx.
-- Instants are rounded up to a thousandth of the window, and calls of one instant share a row: a
-- window has a thousand rows at most, whatever the rate, for a thousandth of its use.
CREATE OR REPLACE FUNCTION livewell.end_calls(
    p_limiter text, p_credential text, p_fences bigint[], p_answered boolean[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_step  interval;
BEGIN
    SELECT greatest(l.rate_seconds / 1000, 0.000001) * interval '1 second' INTO v_step
    FROM livewell.limiter l
    WHERE l.name = p_limiter AND l.rate_calls IS NOT NULL;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    WITH gone AS (
        DELETE FROM livewell.limiter_flight f
        USING unnest(p_fences, p_answered) AS g (fence, answered)
        WHERE f.limiter = p_limiter AND f.credential = p_credential AND f.fence = g.fence
        RETURNING f.calls, CASE WHEN g.answered THEN least(v_now, f.at) ELSE f.at END AS at
    ),
    ended AS (
        SELECT
            date_bin(v_step, g.at + v_step - interval '1 microsecond', timestamptz 'epoch') AS at,
            sum(g.calls)::integer AS calls
        FROM gone g
        GROUP BY 1
    ),
    merged AS (
        UPDATE livewell.limiter_grant g
        SET calls = g.calls + e.calls
        FROM ended e
        WHERE g.limiter = p_limiter AND g.credential = p_credential AND g.at = e.at
        RETURNING g.at
    )
    INSERT INTO livewell.limiter_grant (limiter, credential, at, calls)
    SELECT p_limiter, p_credential, e.at, e.calls FROM ended e
    WHERE NOT EXISTS (SELECT FROM merged m WHERE m.at = e.at);
END
$$;
COMMENT ON FUNCTION livewell.end_calls IS
    'Books the end of calls in flight: each counts against the rate for one window more.';
REVOKE ALL ON FUNCTION livewell.end_calls FROM PUBLIC;
