-- Pause or resume every queue whose name begins so, if they are as many as somebody has confirmed.
--
-- Called by: the dashboard, for all that match.
-- Answer:    n: how many match; changed: how many were not so already. changed is NULL where n is
--            not p_confirmed: then nothing was done.
-- Index:     queue_pkey.
-- Locked in the order of names, before they are counted: of two operators the second waits, and
-- finds nothing left to change.
CREATE OR REPLACE FUNCTION livewell.pause_queues(
    p_prefix text, p_paused boolean, p_confirmed bigint, p_actor text
)
RETURNS TABLE (n bigint, changed bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_most      CONSTANT integer := 10000;
    v_now       timestamptz;
    v_names     text[];
    v_changed   text[];
    v_verb      text := CASE WHEN p_paused THEN 'queues.pause' ELSE 'queues.resume' END;
    v_first     text[];
BEGIN
    v_names := ARRAY(
        SELECT q.name FROM livewell.queue q
        WHERE q.name >= p_prefix AND q.name < p_prefix || '~'
        ORDER BY q.name LIMIT c_most + 1 FOR NO KEY UPDATE
    );
    IF cardinality(v_names) > c_most THEN
        RAISE EXCEPTION 'more than % queues begin with %: choose a longer beginning', c_most,
            quote_literal(p_prefix)
            USING ERRCODE = 'LW003';
    END IF;
    IF cardinality(v_names) <> p_confirmed THEN
        RETURN QUERY SELECT cardinality(v_names)::bigint, NULL::bigint;
        RETURN;
    END IF;
    v_now := livewell.now();
    WITH done AS (
        UPDATE livewell.queue q SET paused_at = CASE WHEN p_paused THEN v_now END
        WHERE q.name = ANY (v_names) AND (q.paused_at IS NOT NULL) <> p_paused
        RETURNING q.name
    )
    SELECT coalesce(array_agg(d.name ORDER BY d.name), '{}') INTO v_changed FROM done d;
    v_first := v_changed[1:5];
    PERFORM livewell.audit_act(
        p_actor, NULL, v_verb, 'queues that begin with ' || coalesce(nullif(p_prefix, ''), 'anything'),
        jsonb_build_object('prefix', p_prefix, 'matching', p_confirmed),
        cardinality(v_changed) || ' changed',
        (SELECT jsonb_object_agg(f.name, NOT p_paused) FROM unnest(v_first) AS f (name)),
        (SELECT jsonb_object_agg(f.name, p_paused) FROM unnest(v_first) AS f (name)),
        cardinality(v_changed)
    );
    RETURN QUERY SELECT p_confirmed, cardinality(v_changed)::bigint;
END
$$;
COMMENT ON FUNCTION livewell.pause_queues IS
    'Pauses or resumes all queues whose names begin so, if they are as many as were confirmed.';
REVOKE ALL ON FUNCTION livewell.pause_queues FROM PUBLIC;
