-- Give each distinct pair that a session asks for its answer: unknown_type; bad_key; subscribed, if
-- the session has it already; new, as many as there is room for; capped. In the order given.
--
-- Called by: subscribe, which holds the viewer's row, as the owner and with its planner settings.
--            p_session: as session_hash answers.
-- Index:     subscription_pkey, data_type_pkey.
CREATE OR REPLACE FUNCTION livewell.answer_pairs(
    p_session uuid, p_types text[], p_keys text[], p_room integer,
    OUT types text[], OUT keys text[], OUT answers text[])
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_mine      pg_catalog.text[];      -- pairs this session has already
    v_unknown   pg_catalog.text;
BEGIN
    -- By the session alone: an index on the key would read all viewers of a popular one.
    v_mine := ARRAY(
        SELECT b.data_type || ':' || b.key FROM livewell.subscription b
        WHERE b.session_id = p_session);

    SELECT array_agg(x.type ORDER BY x.place), array_agg(x.key ORDER BY x.place),
           array_agg(x.answer ORDER BY x.place),
           max(x.type) FILTER (WHERE x.answer = 'unknown_type')
    INTO types, keys, answers, v_unknown FROM (
        SELECT g.type, g.key, g.place,
               CASE WHEN t.name IS NULL THEN 'unknown_type'
                    WHEN livewell.key_fits(t.key_pattern, g.key) IS NOT TRUE THEN 'bad_key'
                    WHEN g.type || ':' || g.key = ANY (v_mine) THEN 'subscribed'
               END AS answer
        FROM (
            SELECT u.type, u.key, min(u.place) AS place
            FROM unnest(p_types, p_keys) WITH ORDINALITY AS u (type, key, place)
            GROUP BY u.type, u.key) g
        LEFT JOIN livewell.data_type t ON t.name = g.type
        OFFSET 0) x;        -- so that each is answered once
    IF v_unknown IS NOT NULL THEN
        PERFORM livewell.warn(
            'refresh.subscribe', 'a type that does not exist was asked for', v_unknown);
    END IF;
    -- What has no answer yet is new; the cap takes the first of them.
    answers := ARRAY(
        SELECT coalesce(a.answer, CASE
            WHEN count(*) FILTER (WHERE a.answer IS NULL) OVER (ORDER BY a.place) <= p_room
            THEN 'new' ELSE 'capped' END)
        FROM unnest(answers) WITH ORDINALITY AS a (answer, place) ORDER BY a.place);
END
$$;
COMMENT ON FUNCTION livewell.answer_pairs IS
    'Says of each pair whether a session may subscribe to it, and to which it has.';
REVOKE ALL ON FUNCTION livewell.answer_pairs FROM PUBLIC;
