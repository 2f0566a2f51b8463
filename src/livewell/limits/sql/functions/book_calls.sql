-- Tell the breaker of a credential how calls ended: ok; outage (the upstream as a whole: no
-- connection, no credential accepted); upstream (its fault, as a task says); key (it failed for
-- this key, perhaps for it alone); data (it answered, but the key or value is bad); new (it failed
-- for a key that never had data); ours (says nothing about it); wall (bandwidth used up).
--
--     closed ──too many failures──▶ open ──time over──▶ half open: one probe ──ok, data──▶ closed
--       │                            ▲                    ▲  └──failed──▶ open, twice as long
--       │                            └──as many again─────┤  └──no verdict──▶ half open
--       └──too many keys failed, each on its own──────────┘
--
-- No verdict: ours, new, released, prober dead, or of a key that was failing already.
-- A failing key counts once, when it turns from good to failing (R13, X10): however often it is
-- tried, it says nothing new.
--
-- Steps:     mark_keys (whose failure is news), then book_probe if the breaker is not closed;
--            otherwise the calls are counted, and weigh_failures opens it if there are too many.
-- Called by: report_wall; charge_jobs, the limiter's row locked. p_fences, p_ends, p_causes: one
--            entry per call, a coalesced call counts once. p_keys, p_fared, p_calls: one per job,
--            see mark_keys; without them every failure is news.
-- p_newest: the newest fence handed out so far. A call claimed before the breaker opened says
--           nothing about the time after: its fence is at most opened_fence.
CREATE OR REPLACE FUNCTION livewell.book_calls(
    p_limiter text,
    p_credential text,
    p_fences bigint[],
    p_ends text[],
    p_newest bigint,
    p_causes text[] DEFAULT NULL,
    p_keys text[] DEFAULT NULL,
    p_fared text[] DEFAULT NULL,
    p_calls bigint[] DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_limiter   livewell.limiter;
    v_c         livewell.limiter_credential;
    v_news      bigint[];
    v_ends      text[] := p_ends;
    v_said      record;         -- what these calls say
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_limiter;
    SELECT * INTO v_c FROM livewell.limiter_credential c
    WHERE c.limiter = p_limiter AND c.name = p_credential;
    IF v_limiter.breaker_failures IS NULL OR v_c.name IS NULL THEN
        RETURN;
    END IF;
    IF p_keys IS NOT NULL THEN
        v_news := livewell.mark_keys(p_limiter, p_credential, p_keys, p_fared, p_calls, v_now);
        v_ends := ARRAY(
            SELECT CASE
                WHEN g.ended IN ('upstream', 'key') AND g.fence <> ALL (v_news) THEN 'known'
                ELSE g.ended
            END
            FROM unnest(p_fences, p_ends) WITH ORDINALITY AS g (fence, ended, place)
            ORDER BY g.place
        );
    END IF;
    IF v_c.breaker <> 'closed' THEN
        PERFORM livewell.book_probe(
            v_limiter, v_c, g.ended, coalesce(g.cause, g.ended), p_newest, v_now
        )
        FROM unnest(p_fences, v_ends, p_causes) AS g (fence, ended, cause)
        WHERE g.fence = v_c.probe_fence;
        RETURN;
    END IF;

    WITH said AS (
        SELECT g.fence, g.ended, g.cause,
            g.ended IN ('outage', 'upstream', 'key', 'wall') AS failed,
            g.ended IN ('ok', 'data') AS answered
        FROM unnest(p_fences, v_ends, p_causes) AS g (fence, ended, cause)
        WHERE g.fence > v_c.opened_fence AND g.ended NOT IN ('ours', 'new', 'known')
    )
    SELECT count(*) AS calls, count(*) FILTER (WHERE s.failed) AS failures,
        count(*) FILTER (WHERE s.ended IN ('outage', 'wall')) AS keyless,
        coalesce(bool_or(s.ended = 'wall'), false) AS wall,
        coalesce(bool_and(s.ended = 'key') FILTER (WHERE s.failed), false) AS keyed,
        -- In the order of the claims: how many failures since the last answer.
        count(*) FILTER (
            WHERE s.failed
                AND s.fence > coalesce((SELECT max(o.fence) FROM said o WHERE o.answered), 0)
        ) + CASE WHEN bool_or(s.answered) THEN 0 ELSE v_c.failures_in_row END AS in_row,
        (
            array_agg(
                coalesce(s.cause, s.ended) ORDER BY s.ended = 'wall' DESC, s.fence DESC
            ) FILTER (WHERE s.failed)
        )[1] AS cause
    INTO v_said FROM said s;
    IF v_said.calls = 0 THEN
        RETURN;
    END IF;
    IF v_said.in_row <> v_c.failures_in_row THEN
        UPDATE livewell.limiter_credential c
        SET failures_in_row = v_said.in_row
        WHERE c.limiter = p_limiter AND c.name = p_credential;
    END IF;
    INSERT INTO livewell.limiter_calls AS k (limiter, credential, since, calls, failures, keyless)
    VALUES (
        p_limiter, p_credential, to_timestamp(floor(extract(epoch FROM v_now) / 10) * 10),
        v_said.calls, v_said.failures, v_said.keyless
    )
    ON CONFLICT (limiter, credential, since)
    DO UPDATE SET calls = k.calls + excluded.calls, failures = k.failures + excluded.failures,
        keyless = k.keyless + excluded.keyless;
    IF v_said.failures > 0 THEN
        PERFORM livewell.weigh_failures(
            v_limiter, v_c, v_said.in_row, v_said.wall, v_said.keyed, p_keys IS NOT NULL,
            v_said.cause, p_newest, v_now
        );
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.book_calls IS
    'Moves the breaker of a credential by how its calls ended.';
REVOKE ALL ON FUNCTION livewell.book_calls FROM PUBLIC;
