-- Let one call try now whether an upstream is back, instead of when its breaker would (R25).
--
-- Called by: `livewell upstreams probe`, POST /v1/upstreams/{name}/probe. p_credential: NULL is
--            every credential.
-- Lock:      the limiter's row first: the probe is granted under the same lock.
-- Answer:    probing (the next claim is the probe), silent (the upstream asked for silence: that is
--            ended by resume_upstream), closed (there is nothing to probe), unknown.
CREATE OR REPLACE FUNCTION livewell.probe_breaker(p_name text, p_credential text, p_actor text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_answer    text := 'unknown';
    v_open      integer;
    v_before    jsonb;
BEGIN
    PERFORM FROM livewell.limiter l WHERE l.name = p_name FOR NO KEY UPDATE;
    v_now := livewell.now();
    IF EXISTS (
        SELECT FROM livewell.limiter_credential c
        WHERE c.limiter = p_name AND c.name = coalesce(p_credential, c.name)
    ) THEN
        SELECT jsonb_object_agg(c.name, jsonb_build_object('open_until', c.open_until))
        INTO v_before
        FROM livewell.limiter_credential c
        WHERE c.limiter = p_name AND c.name = coalesce(p_credential, c.name) AND c.breaker <> 'closed';
        UPDATE livewell.limiter_credential c
        SET open_until = least(c.open_until, v_now), free_at = v_now, failing_until = NULL
        WHERE c.limiter = p_name
            AND c.name = coalesce(p_credential, c.name)
            AND c.breaker <> 'closed';
        GET DIAGNOSTICS v_open = ROW_COUNT;
        v_answer := CASE
            WHEN v_open = 0 THEN 'closed'
            WHEN EXISTS (
                SELECT FROM livewell.limiter_credential c
                WHERE c.limiter = p_name
                    AND c.name = coalesce(p_credential, c.name)
                    AND c.breaker <> 'closed'
                    AND coalesce(c.quiet_until <= v_now, true)
            )
                THEN 'probing'
            ELSE 'silent' END;
    END IF;
    PERFORM livewell.audit_act(
        p_actor, NULL, 'upstreams.probe', p_name,
        jsonb_strip_nulls(jsonb_build_object('credential', p_credential)), v_answer, v_before,
        (
            SELECT jsonb_object_agg(x.name, jsonb_build_object('open_until', v_now))
            FROM jsonb_object_keys(v_before) AS x (name)
        ),
        v_open
    );
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.probe_breaker IS
    'Ends the pause of an open breaker, so that one call tries now; audited.';
REVOKE ALL ON FUNCTION livewell.probe_breaker FROM PUBLIC;
