-- Let an upstream be called again: end the silence that it asked for, and the pause that somebody
-- ordered (R25).
--
-- Called by: `livewell upstreams resume`, POST /v1/upstreams/{name}/resume. p_name: of an upstream,
--            or of a limiter that an app declared.
-- Lock:      the limiter's row first, as everywhere in limits; nobody grants or books calls
--            meanwhile.
-- Answer:    resumed, not_stopped (there was neither), unknown. A breaker is another matter:
--            probe_breaker, close_breaker.
CREATE OR REPLACE FUNCTION livewell.resume_upstream(p_name text, p_actor text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_known     boolean;
    v_ended     integer;
    v_resumed   integer;
    v_answer    text;
    v_before    jsonb;
BEGIN
    PERFORM FROM livewell.limiter l WHERE l.name = p_name FOR NO KEY UPDATE;
    v_known := FOUND OR EXISTS (SELECT FROM livewell.upstream u WHERE u.name = p_name);
    v_now := livewell.now();
    v_before := jsonb_strip_nulls(jsonb_build_object(
        'paused', (
            SELECT u.paused_at IS NOT NULL FROM livewell.upstream u WHERE u.name = p_name
        ),
        'silent_until', (
            SELECT max(c.quiet_until) FROM livewell.limiter_credential c
            WHERE c.limiter = p_name AND c.quiet_until > v_now
        )
    ));
    UPDATE livewell.limiter_credential c
    SET quiet_until = NULL, quiet_since = NULL, quiet_asked_seconds = NULL
    WHERE c.limiter = p_name AND c.quiet_until > v_now;
    GET DIAGNOSTICS v_ended = ROW_COUNT;
    UPDATE livewell.upstream u
    SET paused_at = NULL
    WHERE u.name = p_name AND u.paused_at IS NOT NULL;
    GET DIAGNOSTICS v_resumed = ROW_COUNT;
    v_answer := CASE
        WHEN NOT v_known THEN 'unknown'
        WHEN v_ended + v_resumed > 0 THEN 'resumed'
        ELSE 'not_stopped' END;
    PERFORM livewell.audit_act(
        p_actor, NULL, 'upstreams.resume', p_name,
        jsonb_build_object('silences', v_ended, 'pauses', v_resumed), v_answer,
        CASE WHEN v_known THEN v_before END,
        CASE WHEN v_known THEN jsonb_build_object('paused', false) END, v_ended + v_resumed
    );
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.resume_upstream IS
    'Ends the silence and the pause of an upstream; audited.';
REVOKE ALL ON FUNCTION livewell.resume_upstream FROM PUBLIC;
