-- Mend the payload of a dead letter, and write down who did it, with the payload before and after.
--
-- Called by: CLI `dead edit`, PUT /v1/dead/{id}, the page of a letter.
-- p_was:     md5 of the payload that the caller has seen; NULL: whatever it is now.
-- Answer:    edited | changed (somebody else was faster) | unknown (there is no such letter)
-- Only the payload changes: the task of a letter never does.
CREATE OR REPLACE FUNCTION livewell.mend_dead(
    p_id bigint, p_payload jsonb, p_was text, p_actor text
)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_before jsonb;
BEGIN
    IF jsonb_typeof(p_payload) <> 'object' THEN
        RAISE EXCEPTION 'the payload is of type %; an object with the task''s arguments is needed',
            jsonb_typeof(p_payload)
            USING ERRCODE = 'LW005';
    END IF;
    SELECT d.payload INTO v_before FROM livewell.dead_job d WHERE d.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'unknown';
    ELSIF md5(v_before::text) <> p_was THEN
        RETURN 'changed';
    END IF;
    PERFORM livewell.edit_dead(p_id, p_payload);
    PERFORM livewell.audit_act(
        p_actor, NULL, 'dead.edit', 'job ' || p_id, '{}', 'edited', v_before, p_payload, 1
    );
    RETURN 'edited';
END
$$;
COMMENT ON FUNCTION livewell.mend_dead IS
    'Replaces the payload of one dead letter, if it is still the one that was seen.';
REVOKE ALL ON FUNCTION livewell.mend_dead FROM PUBLIC;
