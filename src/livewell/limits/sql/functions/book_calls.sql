-- Tell the breaker of a credential how calls ended: ok, upstream (its fault), data (it answered, but the key or value is bad), ours (says nothing about it), wall (bandwidth used up).
--
--     closed ──too many failures──▶ open ──time over──▶ half open: one probe ──ok, data──▶ closed
--                                    ▲                       └──upstream──┐  └──ours, released, prober dead──▶ half open, another probe
--                                    └───────── twice as long ◀───────────┘
--
-- Called by: settle_jobs and job_ended, the limiter's row locked. One entry per call: a coalesced call counts once.
-- p_newest: the newest fence handed out so far. A call claimed before the breaker opened says nothing about the time after: its fence is at most opened_fence.
CREATE OR REPLACE FUNCTION livewell.book_calls(p_limiter text, p_credential text, p_fences bigint[], p_ends text[], p_newest bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_limiter   livewell.limiter;
    v_c         livewell.limiter_credential;
    v_calls     integer;
    v_failures  integer;
    v_wall      boolean;
    v_in_row    integer;
    v_probe     text;
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_limiter;
    SELECT * INTO v_c FROM livewell.limiter_credential c WHERE c.limiter = p_limiter AND c.name = p_credential;
    IF v_limiter.breaker_failures IS NULL OR v_c.name IS NULL THEN
        RETURN;
    END IF;
    IF v_c.breaker <> 'closed' THEN
        SELECT g.ended INTO v_probe FROM unnest(p_fences, p_ends) AS g (fence, ended) WHERE g.fence = v_c.probe_fence;
        IF v_probe IN ('ok', 'data') THEN
            UPDATE livewell.limiter_credential c SET breaker = 'closed', open_until = NULL, probe_fence = NULL, opened = 0, failures_in_row = 0, opened_fence = p_newest
            WHERE c.limiter = p_limiter AND c.name = p_credential;
            DELETE FROM livewell.limiter_calls k WHERE k.limiter = p_limiter AND k.credential = p_credential;
        ELSIF v_probe IN ('upstream', 'wall') THEN
            UPDATE livewell.limiter_credential c
            SET breaker = 'open', opened = least(c.opened + 1, 30), probe_fence = NULL, opened_fence = p_newest,
                open_until = v_now + CASE WHEN v_probe = 'wall' THEN v_limiter.wall_seconds
                                          ELSE least(v_limiter.open_seconds_max, v_limiter.open_seconds * 2 ^ c.opened) END * interval '1 second'
            WHERE c.limiter = p_limiter AND c.name = p_credential;
        ELSIF v_probe = 'ours' THEN
            UPDATE livewell.limiter_credential c SET probe_fence = NULL WHERE c.limiter = p_limiter AND c.name = p_credential;
        END IF;
        RETURN;
    END IF;

    SELECT count(*) FILTER (WHERE g.ended <> 'ours'), count(*) FILTER (WHERE g.ended IN ('upstream', 'wall')), coalesce(bool_or(g.ended = 'wall'), false),
           -- In the order of the claims: how many failures since the last answer.
           count(*) FILTER (WHERE g.ended IN ('upstream', 'wall') AND g.fence > coalesce((SELECT max(o.fence) FROM unnest(p_fences, p_ends) AS o (fence, ended) WHERE o.ended IN ('ok', 'data')), 0))
           + CASE WHEN bool_or(g.ended IN ('ok', 'data')) THEN 0 ELSE v_c.failures_in_row END
    INTO v_calls, v_failures, v_wall, v_in_row
    FROM unnest(p_fences, p_ends) AS g (fence, ended) WHERE g.fence > v_c.opened_fence;
    IF v_calls = 0 THEN
        RETURN;
    END IF;
    IF v_in_row <> v_c.failures_in_row THEN
        UPDATE livewell.limiter_credential c SET failures_in_row = v_in_row WHERE c.limiter = p_limiter AND c.name = p_credential;
    END IF;
    INSERT INTO livewell.limiter_calls AS k (limiter, credential, since, calls, failures)
    VALUES (p_limiter, p_credential, to_timestamp(floor(extract(epoch FROM v_now) / 10) * 10), v_calls, v_failures)
    ON CONFLICT (limiter, credential, since) DO UPDATE SET calls = k.calls + excluded.calls, failures = k.failures + excluded.failures;
    IF v_failures = 0 THEN
        RETURN;
    END IF;
    SELECT sum(k.calls), sum(k.failures) INTO v_calls, v_failures FROM livewell.limiter_calls k
    WHERE k.limiter = p_limiter AND k.credential = p_credential AND k.since > v_now - v_limiter.breaker_seconds * interval '1 second';
    IF v_wall OR v_in_row >= v_limiter.breaker_in_row OR v_failures >= v_limiter.breaker_failures AND v_failures >= v_limiter.breaker_share * v_calls THEN
        UPDATE livewell.limiter_credential c
        SET breaker = 'open', opened = 1, probe_fence = NULL, opened_fence = p_newest,
            open_until = v_now + CASE WHEN v_wall THEN v_limiter.wall_seconds ELSE v_limiter.open_seconds END * interval '1 second'
        WHERE c.limiter = p_limiter AND c.name = p_credential;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.book_calls IS 'Moves the breaker of a credential by how its calls ended.';
REVOKE ALL ON FUNCTION livewell.book_calls FROM PUBLIC;
