-- Charge claims of limited queues, and tell the breaker how their calls ended.
--
-- Called by: settle_jobs and finish_jobs with what the worker measured, job_ended for jobs that
--            ended without a report.
-- One entry per claim. p_used NULL: not measured (and 0: no call was made, which teaches the
-- estimate nothing), so p_reserved is charged (a call whose worker died is charged, G6). p_ends
-- NULL: nothing is known about the call, or another entry speaks for it.
-- A call that was answered (ok, data, wall), or that was surely not made (ours, and 0 used), counts
-- for one window from now. All others may still be on their way (end_calls).
-- p_causes: the word for what went wrong with the call. p_calls, p_keys, p_fared: the call of each
--           claim, the key that it was for, and how that key fared (see mark_keys).
-- Limiter rows are locked in the order of their names, in a statement of their own, before anything
-- is read.
CREATE OR REPLACE FUNCTION livewell.charge_jobs(
    p_queues text[],
    p_credentials text[],
    p_fences bigint[],
    p_kinds text[],
    p_reserved bigint[],
    p_used bigint[] DEFAULT NULL,
    p_ends text[] DEFAULT NULL,
    p_causes text[] DEFAULT NULL,
    p_calls bigint[] DEFAULT NULL,
    p_keys text[] DEFAULT NULL,
    p_fared text[] DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_limiters  text[];
    v_newest    bigint;
    v_c         record;
BEGIN
    v_limiters := ARRAY(
        SELECT DISTINCT q.limiter FROM livewell.queue q
        WHERE q.name = ANY (p_queues) AND q.limiter IS NOT NULL
        ORDER BY q.limiter
    );
    IF cardinality(v_limiters) = 0 THEN
        RETURN;
    END IF;
    PERFORM FROM livewell.limiter l
    WHERE l.name = ANY (v_limiters)
    ORDER BY l.name FOR NO KEY UPDATE;
    SELECT s.last_value + 16383 INTO v_newest FROM livewell.fence_seq s;
    FOR v_c IN
        SELECT q.limiter, g.credential, array_agg(g.fence ORDER BY g.fence) AS fences,
            array_agg(coalesce(g.used, g.reserved, 0) ORDER BY g.fence) AS units,
            array_agg(g.kind ORDER BY g.fence) AS kinds,
            array_agg(g.used IS NOT NULL ORDER BY g.fence) AS measured,
            array_agg(
                coalesce(
                    g.ended IN ('ok', 'data', 'wall') OR g.ended = 'ours' AND g.used = 0, false
                ) ORDER BY g.fence
            ) AS answered,
            array_agg(g.fence ORDER BY g.fence) FILTER (WHERE g.ended IS NOT NULL) AS call_fences,
            array_agg(g.ended ORDER BY g.fence) FILTER (WHERE g.ended IS NOT NULL) AS ends,
            array_agg(g.cause ORDER BY g.fence) FILTER (WHERE g.ended IS NOT NULL) AS causes,
            array_agg(g.key ORDER BY g.fence) FILTER (WHERE g.fared IS NOT NULL) AS keys,
            array_agg(g.fared ORDER BY g.fence) FILTER (WHERE g.fared IS NOT NULL) AS fared,
            array_agg(g.call ORDER BY g.fence) FILTER (WHERE g.fared IS NOT NULL) AS calls
        FROM unnest(
            p_queues, p_credentials, p_fences, p_kinds, p_reserved, p_used, p_ends, p_causes,
            p_calls, p_keys, p_fared
        ) AS g (queue, credential, fence, kind, reserved, used, ended, cause, call, key, fared)
        JOIN livewell.queue q ON q.name = g.queue AND q.limiter IS NOT NULL
        GROUP BY q.limiter, g.credential
        ORDER BY q.limiter, g.credential
    LOOP
        PERFORM livewell.end_calls(v_c.limiter, v_c.credential, v_c.fences, v_c.answered);
        PERFORM livewell.book_usage(
            v_c.limiter, v_c.credential, v_c.fences, v_c.units, v_c.kinds, v_c.measured
        );
        IF v_c.ends IS NOT NULL OR v_c.fared IS NOT NULL THEN
            PERFORM livewell.book_calls(
                v_c.limiter, v_c.credential, v_c.call_fences, v_c.ends, v_newest, v_c.causes,
                v_c.keys, v_c.fared, v_c.calls
            );
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.charge_jobs IS
    'Books the usage of claims and how their calls ended with the limiters of their queues.';
REVOKE ALL ON FUNCTION livewell.charge_jobs FROM PUBLIC;
