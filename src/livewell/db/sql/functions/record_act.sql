-- Write down what an operator did, in the transaction that does it.
--
-- Called by: begin_bulk_act, end_bulk_act, mend_dead, probe_breaker, step_bulk_act; functions and
--            statements that mend (resume_upstream, close_breaker, take_singleton …), with what
--            became of it.
-- Why SECURITY DEFINER: whoever may act writes a line and can neither change nor delete one; and no
-- text is written that was not redacted and bounded.
-- Why pg_catalog.text: see warn(). session_user is the login, whoever this function runs as.
CREATE OR REPLACE FUNCTION livewell.record_act(
    p_actor text, p_action text, p_subject text, p_arguments jsonb, p_answer text
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now pg_catalog.timestamptz := livewell.now();
    v_arguments pg_catalog.text := livewell.redact(coalesce(p_arguments, '{}')::pg_catalog.text);
BEGIN
    IF octet_length(v_arguments) > 2000
        OR v_arguments <> coalesce(p_arguments, '{}')::pg_catalog.text
    THEN
        v_arguments := '{"hidden": true}';      -- too long, or something in it looked like a secret
    END IF;
    INSERT INTO livewell.audit (at, actor, login, action, subject, arguments, answer)
    VALUES (
        v_now, left(livewell.redact(p_actor), 200), session_user, left(p_action, 100),
        left(livewell.redact(p_subject), 200), v_arguments::pg_catalog.jsonb,
        left(livewell.redact(coalesce(p_answer, '')), 200)
    );
END
$$;
COMMENT ON FUNCTION livewell.record_act IS
    'Records who did what to what, with which arguments and which answer.';
REVOKE ALL ON FUNCTION livewell.record_act FROM PUBLIC;
