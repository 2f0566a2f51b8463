-- Which of these due keys may be the probe of an upstream whose breaker is half open; NULL: it is
-- not, and all of them may go.
--
-- Called by: order_refreshes.
-- Index:     limiter_credential_pkey, limiter_failing_pkey, ledger_pkey.
-- First those that are not failing, had data and are watched: their answer says how the upstream is
-- (R13). Then those that are not failing. Of those that are failing only one, and only from
-- failing_until on: the one that has failed least, and longest ago, so that each has its turn.
CREATE OR REPLACE FUNCTION livewell.may_probe(
    p_upstream text, p_types text[], p_keys text[], p_viewers integer[], p_now timestamptz)
RETURNS boolean[]
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_failing   boolean;        -- a key that is failing may go
BEGIN
    SELECT bool_or(coalesce(c.failing_until <= p_now, true))
    INTO v_failing FROM livewell.limiter_credential c
    WHERE c.limiter = p_upstream AND c.active AND c.breaker <> 'closed';
    IF v_failing IS NULL OR EXISTS (
        SELECT FROM livewell.limiter_credential c
        WHERE c.limiter = p_upstream AND c.active AND c.breaker = 'closed'
          AND coalesce(c.quiet_until <= p_now, true)) THEN
        RETURN NULL;
    END IF;
    RETURN (
        WITH seen AS (
            SELECT g.place, f.failures, f.failed_at,
                   CASE
                       WHEN f.failures > 0 THEN CASE WHEN v_failing THEN 2 END
                       WHEN l.fetched_at IS NULL OR g.viewers = 0 THEN 1
                       ELSE 0
                   END AS class
            FROM unnest(p_types, p_keys, p_viewers) WITH ORDINALITY AS g (name, key, viewers, place)
            LEFT JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
            CROSS JOIN LATERAL (
                SELECT max(x.failures) AS failures, max(x.failed_at) AS failed_at
                FROM livewell.limiter_failing x
                WHERE x.limiter = p_upstream AND x.key = g.key AND x.failures > 0) f
        ), ranked AS (
            SELECT s.place, s.class, min(s.class) OVER () AS best,
                   row_number() OVER (
                       ORDER BY s.class NULLS LAST, s.failures, s.failed_at, s.place) AS turn
            FROM seen s
        )
        SELECT array_agg(
            coalesce(r.class = r.best AND (r.best < 2 OR r.turn = 1), false) ORDER BY r.place)
        FROM ranked r);
END
$$;
COMMENT ON FUNCTION livewell.may_probe IS 'Which due keys may be the probe of a half-open breaker.';
REVOKE ALL ON FUNCTION livewell.may_probe FROM PUBLIC;
