-- Open a breaker, or let it doubt: half open at once, so that the next call is a probe.
--
-- Called by: weigh_failures, book_probe, the limiter's row locked. p_how: open (each time twice as
--            long), wall (hours), doubt.
-- Keys that are failing wait a little longer than the others for the probe: whoever is not failing
-- comes first, also if the due check has yet to queue it.
CREATE OR REPLACE FUNCTION livewell.open_breaker(
    p_limiter livewell.limiter,
    p_c livewell.limiter_credential,
    p_how text,
    p_cause text,
    p_newest bigint,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    -- seconds that keys that are not failing have to themselves
    c_first     CONSTANT float8 := 15;
    v_until     timestamptz := p_now + CASE p_how
        WHEN 'doubt' THEN 0
        WHEN 'wall' THEN p_limiter.wall_seconds
        ELSE least(p_limiter.open_seconds_max, p_limiter.open_seconds * 2 ^ p_c.opened)
    END * interval '1 second';
BEGIN
    UPDATE livewell.limiter_credential c
    SET breaker = CASE p_how WHEN 'doubt' THEN 'half_open' ELSE 'open' END, open_until = v_until,
        opened = CASE p_how WHEN 'doubt' THEN 0 ELSE least(c.opened + 1, 30) END,
        probe_fence = NULL, opened_fence = p_newest, opened_reason = left(p_cause, 40),
        free_at = v_until,
        failures_in_row = CASE p_how
            WHEN 'doubt' THEN greatest(c.failures_in_row, p_limiter.breaker_in_row)
            ELSE c.failures_in_row
        END,
        failing_until = v_until + least(c_first, p_limiter.open_seconds) * interval '1 second'
    WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
END
$$;
COMMENT ON FUNCTION livewell.open_breaker IS
    'Opens the breaker of a credential, or puts it in doubt.';
REVOKE ALL ON FUNCTION livewell.open_breaker FROM PUBLIC;
