-- Open the breaker of a credential if too many of its calls failed: at the bandwidth wall, so many
-- in a row, or so many and such a share of the calls in the window.
--
-- Called by: book_calls, the limiter's row locked, after it has counted calls of which some failed.
--            p_in_row: failures since the last answer; p_wall: one met the wall; p_keyed: each
--            failed for its key, perhaps for it alone; p_by_key: keys are known.
-- Keys that fail each on its own open nothing by themselves: they raise a doubt, half open with
-- opened = 0, and the probe, a key that is not failing, decides. Only as many again in a row open
-- the breaker: a handful of bad keys that happen to come one after the other stops nobody.
-- Index:     limiter_calls_pkey, limiter_failing_turned_idx. The planner settings are those of
--            book_calls.
CREATE OR REPLACE FUNCTION livewell.weigh_failures(
    p_limiter livewell.limiter,
    p_c livewell.limiter_credential,
    p_in_row bigint,
    p_wall boolean,
    p_keyed boolean,
    p_by_key boolean,
    p_cause text,
    p_newest bigint,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_window    record;         -- calls, failures and keyless, of the window
    v_keys      integer;        -- different keys that turned in the window
BEGIN
    SELECT sum(k.calls) AS calls, sum(k.failures) AS failures, sum(k.keyless) AS keyless
    INTO v_window FROM livewell.limiter_calls k
    WHERE k.limiter = p_limiter.name
        AND k.credential = p_c.name
        AND k.since > p_now - p_limiter.breaker_seconds * interval '1 second';
    SELECT count(*) INTO v_keys FROM livewell.limiter_failing f
    WHERE f.limiter = p_limiter.name
        AND f.credential = p_c.name
        AND f.counted
        AND f.turned_at > p_now - p_limiter.breaker_seconds * interval '1 second';
    IF p_wall
        OR p_in_row >= p_limiter.breaker_in_row
        OR v_window.failures >= p_limiter.breaker_failures
            AND v_window.failures >= p_limiter.breaker_share * v_window.calls
            -- One key that fails at every other call is still one key.
            AND (NOT p_by_key OR v_window.keyless + v_keys >= p_limiter.breaker_failures)
    THEN
        UPDATE livewell.limiter_credential c
        SET opened_at = p_now, opened_keys = v_keys
        WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
        PERFORM livewell.open_breaker(
            p_limiter, p_c,
            CASE WHEN p_wall THEN 'wall' WHEN p_keyed THEN 'doubt' ELSE 'open' END,
            p_cause, p_newest, p_now
        );
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.weigh_failures IS
    'Opens the breaker of a credential, or makes it half open, if too many calls failed.';
REVOKE ALL ON FUNCTION livewell.weigh_failures FROM PUBLIC;
