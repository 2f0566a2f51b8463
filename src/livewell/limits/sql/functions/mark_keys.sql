-- Keep which keys of a credential are failing, and say for which of these calls a key has just
-- turned from good to failing: only that is news for a breaker.
--
-- Called by: book_calls, the limiter's row locked. One entry per job: its key, how the key fared
--            (ok; upstream, key: failed; new: failed, and never had data; anything else says
--            nothing), and its call.
-- Index:     limiter_failing_pkey.
CREATE OR REPLACE FUNCTION livewell.mark_keys(
    p_limiter text,
    p_credential text,
    p_keys text[],
    p_fared text[],
    p_calls bigint[],
    p_now timestamptz
)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_good  text[] := ARRAY(
        SELECT g.key FROM unnest(p_keys, p_fared) AS g (key, fared) WHERE g.fared = 'ok'
    );
    v_news  bigint[];
BEGIN
    UPDATE livewell.limiter_failing f
    SET failures = 0
    WHERE f.limiter = p_limiter
        AND f.key = ANY (v_good)
        AND f.credential = p_credential
        AND f.failures > 0;
    WITH failed AS (
        SELECT g.key, min(g.call) AS call, bool_or(g.fared <> 'new') AS counted
        FROM unnest(p_keys, p_fared, p_calls) AS g (key, fared, call)
        WHERE g.fared IN ('upstream', 'key', 'new')
        GROUP BY g.key
    ),
    known AS (
        SELECT f.key FROM livewell.limiter_failing f
        WHERE f.limiter = p_limiter
            AND f.key = ANY (ARRAY(SELECT x.key FROM failed x))
            AND f.credential = p_credential
            AND f.failures > 0
    ),
    kept AS (
        INSERT INTO livewell.limiter_failing AS f (
            limiter, key, credential, turned_at, failed_at, failures, counted
        )
        SELECT p_limiter, x.key, p_credential, p_now, p_now, 1, x.counted FROM failed x
        ORDER BY x.key
        ON CONFLICT (limiter, key, credential)
        DO UPDATE SET failures = f.failures + 1, failed_at = excluded.failed_at,
            counted = f.counted OR excluded.counted,
            turned_at = CASE WHEN f.failures = 0 THEN excluded.turned_at ELSE f.turned_at END
    )
    SELECT array_agg(DISTINCT x.call) INTO v_news FROM failed x
    WHERE x.counted AND x.key NOT IN (SELECT k.key FROM known k);
    RETURN coalesce(v_news, '{}');
END
$$;
COMMENT ON FUNCTION livewell.mark_keys IS
    'Marks keys as failing or good again; answers the calls whose key has just turned.';
REVOKE ALL ON FUNCTION livewell.mark_keys FROM PUBLIC;
