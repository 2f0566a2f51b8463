-- The probe of a breaker that is not closed has ended: close it, open it again, or let another key
-- probe.
--
-- Called by: book_calls, the limiter's row locked, with the words that it explains; and known: it
--            failed for a key that was failing already.
-- known: says nothing new, so keys that are not failing may probe at once; those that are wait, as
-- long as an opening lasts.
CREATE OR REPLACE FUNCTION livewell.book_probe(
    p_limiter livewell.limiter,
    p_c livewell.limiter_credential,
    p_ended text,
    p_cause text,
    p_newest bigint,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
BEGIN
    IF p_ended IN ('key', 'upstream') THEN
        UPDATE livewell.limiter_credential c
        SET opened_keys = c.opened_keys + 1
        WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
    END IF;
    IF p_ended IN ('ok', 'data') THEN
        UPDATE livewell.limiter_credential c
        SET breaker = 'closed', open_until = NULL, probe_fence = NULL, opened = 0,
            failures_in_row = 0, opened_fence = p_newest, free_at = p_now, failing_until = NULL,
            opened_at = NULL, opened_reason = NULL, opened_keys = NULL
        WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
        DELETE FROM livewell.limiter_calls k
        WHERE k.limiter = p_limiter.name AND k.credential = p_c.name;
    ELSIF p_ended = 'known' THEN
        UPDATE livewell.limiter_credential c
        SET probe_fence = NULL, free_at = p_now,
            opened = CASE WHEN c.opened = 0 THEN 0 ELSE least(c.opened + 1, 30) END,
            failing_until = p_now + least(
                p_limiter.open_seconds_max, p_limiter.open_seconds * 2 ^ c.opened
            ) * interval '1 second'
        WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
    ELSIF p_ended IN ('ours', 'new')
        OR p_ended = 'key'
            AND p_c.opened = 0
            AND p_c.failures_in_row + 1 < 2 * p_limiter.breaker_in_row
    THEN
        UPDATE livewell.limiter_credential c
        SET probe_fence = NULL, free_at = p_now,
            failures_in_row = c.failures_in_row + (p_ended = 'key')::integer
        WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
    ELSE
        PERFORM livewell.open_breaker(
            p_limiter, p_c, CASE p_ended WHEN 'wall' THEN 'wall' ELSE 'open' END, p_cause, p_newest,
            p_now
        );
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.book_probe IS
    'Moves a breaker that is not closed by how its probe ended.';
REVOKE ALL ON FUNCTION livewell.book_probe FROM PUBLIC;
