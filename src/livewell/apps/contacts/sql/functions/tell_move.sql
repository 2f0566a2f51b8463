-- A merge or an unmerge as two events: one for who follows the contact that stays, one for who
-- follows the other. Same words, two keys. At most 200 identities are listed: a receiver may take no
-- more than 256 KB; `more` says how many there are besides.
--
-- Called by: merge_contacts, unmerge_contact.
CREATE OR REPLACE FUNCTION livewell.tell_move(
    p_tenant text, p_topic text, p_winner uuid, p_loser uuid, p_more jsonb, p_trace text
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_max   CONSTANT integer := 200;
    v_all   pg_catalog.jsonb := p_more -> 'identities';
    v_said  pg_catalog.jsonb := p_more || jsonb_build_object(
        'winner', p_winner, 'loser', p_loser, 'more', greatest(jsonb_array_length(v_all) - c_max, 0));
BEGIN
    IF jsonb_array_length(v_all) > c_max THEN
        v_said := v_said || jsonb_build_object('identities', (
            SELECT jsonb_agg(l.pair ORDER BY l.place)
            FROM jsonb_array_elements(v_all) WITH ORDINALITY AS l (pair, place) WHERE l.place <= c_max));
    END IF;
    PERFORM livewell.tell_contact(p_tenant, p_topic, p_winner, v_said, p_trace);
    PERFORM livewell.tell_contact(p_tenant, p_topic, p_loser, v_said, p_trace);
END
$$;
COMMENT ON FUNCTION livewell.tell_move IS 'Emits an event for both contacts of a merge or an unmerge.';
REVOKE ALL ON FUNCTION livewell.tell_move FROM PUBLIC;
