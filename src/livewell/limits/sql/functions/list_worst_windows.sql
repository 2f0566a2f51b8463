-- How near each of these credentials came to its rate in the last hour: the window with the most
-- calls, what was allowed in it, and the calls of each minute.
--
-- Called by: the dashboard. p_limiters, p_credentials: which ones, as pairs; 100 are looked at.
-- Index:     limiter_calls_pkey, 360 rows for each credential.
-- Calls are counted in steps of ten seconds as their answers are booked (book_calls). In any window
-- no more answers are booked than calls were allowed (limiter_rate), so this may be held against
-- the rate. Calls that say nothing about the upstream (a key that is known to fail) are not in it,
-- and a limiter without a breaker counts none: there is no row for it.
-- window_seconds: that of the rate, in whole steps of ten seconds; a rate of more than an hour has
-- no window here.
CREATE OR REPLACE FUNCTION livewell.list_worst_windows(p_limiters text[], p_credentials text[])
RETURNS TABLE (
    limiter text, credential text, window_seconds float8, allowed float8, worst bigint,
    ended_at timestamptz, minutes bigint[])
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
    v_from  timestamptz := date_trunc('minute', v_now) - interval '59 minutes';
BEGIN
    RETURN QUERY
    SELECT l.name, c.name, w.seconds,
        least(l.rate_calls, c.learnt_calls) * w.seconds / l.rate_seconds, x.calls,
        x.since + interval '10 seconds', m.minutes
    FROM unnest(p_limiters[:100], p_credentials[:100]) AS g (limiter, credential)
    JOIN livewell.limiter l ON l.name = g.limiter AND l.breaker_failures IS NOT NULL
    JOIN livewell.limiter_credential c ON c.limiter = l.name AND c.name = g.credential
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN l.rate_seconds <= 3600 THEN ceil(l.rate_seconds / 10) * 10
        END AS seconds
    ) w
    LEFT JOIN LATERAL (
        SELECT sum(k.calls) OVER past AS calls, k.since
        FROM livewell.limiter_calls k
        WHERE k.limiter = l.name AND k.credential = c.name AND k.since >= v_from
            AND w.seconds IS NOT NULL
        WINDOW past AS (
            ORDER BY k.since
            RANGE BETWEEN coalesce(w.seconds - 10, 0) * interval '1 second' PRECEDING
                AND CURRENT ROW)
        ORDER BY 1 DESC, 2 DESC LIMIT 1
    ) x ON true
    CROSS JOIN LATERAL (
        SELECT array_agg(coalesce(o.calls, 0) ORDER BY t.at) AS minutes
        FROM generate_series(v_from, v_now, interval '1 minute') AS t (at)
        LEFT JOIN (
            SELECT date_trunc('minute', k.since) AS at, sum(k.calls) AS calls
            FROM livewell.limiter_calls k
            WHERE k.limiter = l.name AND k.credential = c.name AND k.since >= v_from
            GROUP BY 1
        ) o ON o.at = t.at
    ) m;
END
$$;
COMMENT ON FUNCTION livewell.list_worst_windows IS
    'For credentials of limiters: the window of the last hour with the most calls, and what was '
    'allowed in it.';
REVOKE ALL ON FUNCTION livewell.list_worst_windows FROM PUBLIC;
