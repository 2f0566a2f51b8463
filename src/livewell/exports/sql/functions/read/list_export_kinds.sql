-- What can be exported, by name.
--
-- Called by: Exports.kinds, GET /v1/exports/kinds.
-- Why SECURITY DEFINER: livewell_api has no table rights; it answers what programs have declared.
CREATE OR REPLACE FUNCTION livewell.list_export_kinds()
RETURNS SETOF jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
BEGIN
    RETURN QUERY
    SELECT jsonb_build_object(
        'name', k.name, 'content_type', k.content_type, 'suffix', k.suffix,
        'templates', k.templates)
    FROM livewell.export_kind k ORDER BY k.name LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_export_kinds IS 'Every kind of export, with its templates.';
REVOKE ALL ON FUNCTION livewell.list_export_kinds FROM PUBLIC;
