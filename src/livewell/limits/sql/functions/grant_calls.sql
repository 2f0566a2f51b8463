-- Write down that n calls were allowed under a credential: from now on they are in flight.
--
-- Called by: claim_limited, take_permits and take_call, in the transaction that hands out the
--            permits and under the limiter's row lock.
-- Index:     limiter_flight_idx, limiter_grant_idx.
-- p_fences:  the fences of the calls, which share p_calls evenly. end_calls finds them by these.
-- What no longer counts goes at the same time, so the log holds about one window.
CREATE OR REPLACE FUNCTION livewell.grant_calls(
    p_limiter livewell.limiter,
    p_credential text,
    p_now timestamptz,
    p_calls integer,
    p_probe_fence bigint,
    p_fences bigint[] DEFAULT '{0}'
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_counted   timestamptz := p_now - p_limiter.rate_seconds * interval '1 second';
BEGIN
    IF p_limiter.rate_calls IS NOT NULL THEN
        DELETE FROM livewell.limiter_grant g
        WHERE g.limiter = p_limiter.name AND g.credential = p_credential AND g.at <= v_counted;
        DELETE FROM livewell.limiter_flight f
        WHERE f.limiter = p_limiter.name AND f.credential = p_credential AND f.at <= v_counted;
        INSERT INTO livewell.limiter_flight (limiter, credential, fence, calls, at)
        SELECT p_limiter.name, p_credential, f, p_calls / cardinality(p_fences),
            p_now + (p_limiter.permit_seconds + p_limiter.deadline_seconds) * interval '1 second'
        FROM unnest(p_fences) AS f;
    END IF;
    UPDATE livewell.limiter_credential c
    SET
        paced_to = CASE
            WHEN p_limiter.rate_calls IS NULL THEN NULL
            ELSE greatest(c.paced_to, p_now) + p_calls * p_limiter.rate_seconds / least(
                p_limiter.rate_calls, c.learnt_calls
            ) * interval '1 second'
        END,
        breaker = CASE WHEN c.breaker = 'closed' THEN 'closed' ELSE 'half_open' END,
        probe_fence = CASE
            WHEN c.breaker = 'closed' THEN NULL
            ELSE coalesce(p_probe_fence, c.probe_fence)
        END
    WHERE c.limiter = p_limiter.name
        AND c.name = p_credential
        AND (p_limiter.rate_calls IS NOT NULL OR c.breaker <> 'closed');
END
$$;
COMMENT ON FUNCTION livewell.grant_calls IS
    'Records permits given under a credential, and which fence is the probe of a half-open '
    'breaker.';
REVOKE ALL ON FUNCTION livewell.grant_calls FROM PUBLIC;
