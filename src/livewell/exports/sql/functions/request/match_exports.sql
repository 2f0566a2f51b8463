-- What each item of a request is: new (made), the same as an unfinished one, or known by its id.
--
-- Called by: request_exports, which holds the user's lock.
-- Index:     export_pkey, export_same_idx
-- Answer:    the items, each with place, answer and the export that stands for it.
-- An item that is in the request twice is the same as its first place.
CREATE OR REPLACE FUNCTION livewell.match_exports(p_user text, p_items jsonb)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_found pg_catalog.jsonb;
BEGIN
    WITH item AS (
        SELECT g.place, g.body, (g.body ->> 'id')::pg_catalog.uuid AS id,
            k.id AS known_id, s.id AS same_id,
            first_value((g.body ->> 'id')::pg_catalog.uuid) OVER (
                PARTITION BY g.body ->> 'kind', g.body ->> 'document', g.body ->> 'version',
                    g.body ->> 'hash'
                ORDER BY k.id IS NULL, g.place
            ) AS first_id
        FROM jsonb_array_elements(p_items) WITH ORDINALITY AS g (body, place)
        LEFT JOIN livewell.export k ON k.id = (g.body ->> 'id')::pg_catalog.uuid AND k.user_id = p_user
        LEFT JOIN livewell.export s ON s.user_id = p_user
            AND s.kind = g.body ->> 'kind' AND s.document_id = g.body ->> 'document'
            AND s.document_version = g.body ->> 'version'
            AND s.options_hash = decode(g.body ->> 'hash', 'hex')
            AND s.state IN ('waiting', 'running')
    )
    SELECT jsonb_agg(i.body || jsonb_build_object(
        'place', i.place, 'export', coalesce(i.known_id, i.same_id, i.first_id),
        'answer', CASE
            WHEN i.known_id IS NOT NULL THEN 'known'
            WHEN i.same_id IS NOT NULL OR i.first_id <> i.id THEN 'same'
            ELSE 'made'
        END) ORDER BY i.place)
    INTO v_found FROM item i;
    RETURN v_found;
END
$$;
COMMENT ON FUNCTION livewell.match_exports IS 'Finds the exports that stand for what is asked for again.';
REVOKE ALL ON FUNCTION livewell.match_exports FROM PUBLIC;
