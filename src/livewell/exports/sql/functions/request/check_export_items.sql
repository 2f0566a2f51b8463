-- What is wrong with a request, or NULL: a kind that nobody declares, a template that it lacks.
--
-- Called by: request_exports.
CREATE OR REPLACE FUNCTION livewell.check_export_items(p_items jsonb)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_item  record;
    v_kind  livewell.export_kind;
BEGIN
    FOR v_item IN
        SELECT i.kind, i.options ->> 'template' AS template
        FROM jsonb_to_recordset(p_items) AS i (kind pg_catalog.text, options pg_catalog.jsonb)
    LOOP
        SELECT k.* INTO v_kind FROM livewell.export_kind k WHERE k.name = v_item.kind;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('answer', 'kind', 'kind', left(v_item.kind, 63), 'allowed', (
                SELECT coalesce(jsonb_agg(k.name ORDER BY k.name), '[]') FROM livewell.export_kind k));
        END IF;
        IF v_item.template IS NOT NULL AND cardinality(v_kind.templates) > 0
            AND v_item.template <> ALL (v_kind.templates) THEN
            RETURN jsonb_build_object(
                'answer', 'template', 'template', left(v_item.template, 63),
                'allowed', to_jsonb(v_kind.templates));
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION livewell.check_export_items IS 'Names a kind or a template that does not exist.';
REVOKE ALL ON FUNCTION livewell.check_export_items FROM PUBLIC;
