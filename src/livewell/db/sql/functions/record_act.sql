-- Write down what an operator did, without what was there before and after.
--
-- Called by: processes before 0.8.0 (audit_act has followed).
-- Why SECURITY DEFINER: as audit_act, which bounds and redacts; the caller of this one may be older
-- than the right to call that one.
CREATE OR REPLACE FUNCTION livewell.record_act(
    p_actor text, p_action text, p_subject text, p_arguments jsonb, p_answer text
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
BEGIN
    PERFORM livewell.audit_act(
        p_actor, NULL, p_action, p_subject, p_arguments, p_answer, NULL, NULL, NULL
    );
END
$$;
COMMENT ON FUNCTION livewell.record_act IS
    'Records who did what to what, with which arguments and which answer.';
REVOKE ALL ON FUNCTION livewell.record_act FROM PUBLIC;
