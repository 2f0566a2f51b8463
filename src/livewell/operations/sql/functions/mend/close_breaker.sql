-- Close the breaker of an upstream by hand: its calls are allowed again, all at once (R25).
--
-- Called by: `livewell upstreams close`, POST /v1/upstreams/{name}/close. p_credential: NULL is
--            every credential.
-- Lock:      the limiter's row first: calls are booked under it, so none is counted between closing
--            and forgetting.
-- As a probe that succeeded does it (book_calls): what was claimed before says nothing about the
-- time after. Five failures in a row open it again.
-- Answer:    closed, was_closed, unknown.
CREATE OR REPLACE FUNCTION livewell.close_breaker(p_name text, p_credential text, p_actor text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_answer    text := 'unknown';
    v_newest    bigint;
    v_closed    text[];
    v_before    jsonb;
BEGIN
    PERFORM FROM livewell.limiter l WHERE l.name = p_name FOR NO KEY UPDATE;
    v_now := livewell.now();
    SELECT s.last_value + 16383 INTO v_newest FROM livewell.fence_seq s;
    IF EXISTS (
        SELECT FROM livewell.limiter_credential c
        WHERE c.limiter = p_name AND c.name = coalesce(p_credential, c.name)
    ) THEN
        SELECT jsonb_object_agg(c.name, c.breaker) INTO v_before
        FROM livewell.limiter_credential c
        WHERE c.limiter = p_name AND c.name = coalesce(p_credential, c.name) AND c.breaker <> 'closed';
        WITH closed AS (
            UPDATE livewell.limiter_credential c
            SET breaker = 'closed', open_until = NULL, probe_fence = NULL, opened = 0,
                failures_in_row = 0, opened_fence = v_newest, opened_at = NULL,
                opened_reason = NULL, opened_keys = NULL, failing_until = NULL, free_at = v_now
            WHERE c.limiter = p_name
                AND c.name = coalesce(p_credential, c.name)
                AND c.breaker <> 'closed'
            RETURNING c.name
        )
        SELECT array_agg(x.name) INTO v_closed FROM closed x;
        DELETE FROM livewell.limiter_calls k
        WHERE k.limiter = p_name AND k.credential = ANY (v_closed);
        v_answer := CASE WHEN v_closed IS NULL THEN 'was_closed' ELSE 'closed' END;
    END IF;
    PERFORM livewell.audit_act(
        p_actor, NULL, 'upstreams.close', p_name,
        jsonb_strip_nulls(jsonb_build_object('credential', p_credential)), v_answer, v_before,
        (SELECT jsonb_object_agg(x.name, 'closed') FROM unnest(v_closed) AS x (name)),
        cardinality(v_closed)
    );
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.close_breaker IS
    'Closes the breaker of a limiter and forgets its failures; audited.';
REVOKE ALL ON FUNCTION livewell.close_breaker FROM PUBLIC;
