-- Of the keys that are new to a session, refuse those that nobody knew and for which the user's
-- budget of this minute has no room: their answer becomes cold_budget.
--
-- Called by: subscribe, which holds the user's row. read_through spends from the same budget, one
--            key at a time (spend_cold_read).
CREATE OR REPLACE FUNCTION livewell.spend_cold_keys(
    p_user text, p_max integer, p_types text[], p_keys text[], p_answers text[])
RETURNS text[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_minute    pg_catalog.timestamptz := date_trunc('minute', livewell.now());
    v_spent     integer;
    v_cold      integer;
    v_answers   pg_catalog.text[];
    v_room      integer;        -- of this user, and of the strangers it shares with
    v_wanted    integer;
    v_origin    pg_catalog.text;
BEGIN
    SELECT CASE WHEN w.cold_minute = v_minute THEN w.cold_reads ELSE 0 END
    INTO v_spent FROM livewell.viewer w
    WHERE w.user_id = p_user;
    SELECT count(*) INTO v_wanted FROM unnest(p_types, p_keys, p_answers) AS g (type, key, answer)
    -- See subscribe.
    LEFT JOIN LATERAL (
        SELECT true AS known FROM livewell.ledger x
        WHERE x.data_type = g.type AND x.key = g.key OFFSET 0) l ON true
    WHERE g.answer = 'new' AND l.known IS NULL;
    v_room := least(greatest(p_max - v_spent, 0), v_wanted);
    IF v_room > 0 AND p_user LIKE 'session:%' THEN
        SELECT s.origin
        INTO v_origin FROM livewell.viewer_session s
        WHERE s.id = substr(p_user, 9)::pg_catalog.uuid;
        v_room := livewell.take_cold(v_origin, p_max, v_room);
    END IF;
    SELECT array_agg(
        CASE WHEN x.cold AND x.nth > v_room THEN 'cold_budget' ELSE x.answer END ORDER BY x.place),
           count(*) FILTER (WHERE x.cold AND x.nth <= v_room)
    INTO v_answers, v_cold FROM (
        SELECT g.answer, g.place, c.cold,
               count(*) FILTER (WHERE c.cold) OVER (ORDER BY g.place) AS nth
        FROM unnest(p_types, p_keys, p_answers) WITH ORDINALITY AS g (type, key, answer, place),
             LATERAL (
                 SELECT g.answer = 'new'
                     AND NOT EXISTS (
                         SELECT FROM livewell.ledger l
                         WHERE l.data_type = g.type AND l.key = g.key) AS cold) c) x;
    IF v_cold > 0 THEN
        UPDATE livewell.viewer w SET cold_minute = v_minute, cold_reads = v_spent + v_cold
        WHERE w.user_id = p_user;
    END IF;
    RETURN v_answers;
END
$$;
COMMENT ON FUNCTION livewell.spend_cold_keys IS
    'Counts new subscriptions to unknown keys against the user''s budget of this minute, and '
    'refuses those beyond it.';
REVOKE ALL ON FUNCTION livewell.spend_cold_keys FROM PUBLIC;
