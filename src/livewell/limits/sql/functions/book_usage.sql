-- Charge what claims have used, each fence once: a second report books only the difference to the
-- first. A guess never replaces what is already charged: recovery may come after the report of a
-- worker that was buried and is back.
--
-- Called by: book_call, charge_jobs; settle_jobs, finish_jobs (late reports), job_ended; the
--            limiter's row is locked by the caller.
-- One credential per call; p_kinds teach the estimates where p_measured says that the number was
-- measured and not taken from the estimate itself; 0 is a call that was not made.
CREATE OR REPLACE FUNCTION livewell.book_usage(
    p_limiter text,
    p_credential text,
    p_fences bigint[],
    p_units bigint[],
    p_kinds text[],
    p_measured boolean[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_limiter   livewell.limiter;
    v_since     timestamptz := date_trunc('hour', v_now, 'UTC');
    v_units     bigint;
    v_calls     bigint;
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_limiter;
    IF v_limiter.budget_resets IS NOT NULL THEN
        -- an hour in which the day changes has two rows
        v_since := greatest(v_since, livewell.budget_since(v_limiter, v_now));
    END IF;
    WITH before AS (
        SELECT s.fence, s.units FROM livewell.usage_settled s WHERE s.fence = ANY (p_fences)
    ),
    given AS (
        SELECT g.fence, greatest(g.units, 0) AS units
        FROM unnest(p_fences, p_units, p_measured) AS g (fence, units, measured)
        WHERE g.measured OR NOT EXISTS (SELECT FROM before b WHERE b.fence = g.fence)
    ),
    kept AS (
        INSERT INTO livewell.usage_settled AS s (fence, units, at)
        SELECT g.fence, g.units, v_now FROM given g
        ORDER BY g.fence
        ON CONFLICT (fence) DO UPDATE SET units = excluded.units
    )
    SELECT coalesce(sum(g.units - coalesce(b.units, 0)), 0), count(*) FILTER (WHERE b.fence IS NULL)
    INTO v_units, v_calls
    FROM given g
    LEFT JOIN before b ON b.fence = g.fence;

    INSERT INTO livewell.limiter_usage AS u (limiter, credential, since, units, calls)
    VALUES (p_limiter, p_credential, v_since, v_units, v_calls)
    ON CONFLICT (limiter, credential, since)
    DO UPDATE SET units = u.units + excluded.units, calls = u.calls + excluded.calls;

    INSERT INTO livewell.limiter_estimate AS e (limiter, kind, units)
    SELECT p_limiter, g.kind, avg(g.units)
    FROM unnest(p_units, p_kinds, p_measured) AS g (units, kind, measured)
    WHERE g.measured AND g.units > 0 AND v_limiter.budget_unit <> 'calls'
    GROUP BY g.kind
    ORDER BY g.kind
    ON CONFLICT (limiter, kind) DO UPDATE SET units = 0.9 * e.units + 0.1 * excluded.units;
END
$$;
COMMENT ON FUNCTION livewell.book_usage IS
    'Books used units once per fence and lets the estimates learn.';
REVOKE ALL ON FUNCTION livewell.book_usage FROM PUBLIC;
