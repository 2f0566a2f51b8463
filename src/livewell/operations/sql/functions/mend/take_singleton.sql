-- Take a singleton from a holder that is dead, so that another need not wait for its lease (R25).
--
-- Called by: `livewell singletons take`, POST /v1/singletons/{name}/take.
-- Dead:      no worker of the holder's name has a lease that runs. A holder that lives keeps it,
--            unless p_force: then the run that it is in is fenced, and what it writes under the
--            singleton is refused.
-- Lock:      the singleton's row; work under it holds that lock (hold_singleton), so it is taken
--            between two steps of that work, never within one.
-- The fence grows: whoever had it can neither renew it nor write under it. A run that was going on
-- becomes crashed with the next tick.
-- Answer:    taken, alive (and nothing was done), free (nobody holds it), unknown.
CREATE OR REPLACE FUNCTION livewell.take_singleton(p_name text, p_force boolean, p_actor text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_row       livewell.singleton;
    v_answer    text;
BEGIN
    SELECT * INTO v_row FROM livewell.singleton s WHERE s.name = p_name FOR NO KEY UPDATE;
    v_now := livewell.now();
    v_answer := CASE
        WHEN v_row.name IS NULL THEN 'unknown'
        WHEN v_row.expires_at <= v_now THEN 'free'
        WHEN NOT p_force
            AND EXISTS (
                SELECT FROM livewell.worker w WHERE w.name = v_row.holder AND w.expires_at > v_now
            )
            THEN 'alive'
        ELSE 'taken' END;
    IF v_answer = 'taken' THEN
        UPDATE livewell.singleton s
        SET expires_at = '-infinity', fence = s.fence + 1
        WHERE s.name = p_name;
    END IF;
    PERFORM livewell.audit_act(
        p_actor, NULL, 'singletons.take', p_name,
        jsonb_strip_nulls(jsonb_build_object('force', p_force, 'holder', v_row.holder)), v_answer,
        CASE WHEN v_answer = 'taken' THEN jsonb_build_object('holder', v_row.holder) END,
        CASE WHEN v_answer = 'taken' THEN jsonb_build_object('holder', NULL) END, NULL
    );
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.take_singleton IS
    'Ends the term of a singleton whose holder is dead, or of any if forced; audited.';
REVOKE ALL ON FUNCTION livewell.take_singleton FROM PUBLIC;
