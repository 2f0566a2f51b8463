-- Say what can be exported; a kind that is declared again is brought up to date.
--
-- Called by: every app that declares exporters, when it opens.
-- Writes only when something differs: a fleet that starts together must not fight over one row.
CREATE OR REPLACE FUNCTION livewell.declare_export_kind(
    p_name text, p_content_type text, p_suffix text, p_templates text[], p_bytes_estimate bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    INSERT INTO livewell.export_kind AS k (
        name, content_type, suffix, templates, bytes_estimate, declared_at
    )
    VALUES (p_name, p_content_type, p_suffix, p_templates, p_bytes_estimate, v_now)
    ON CONFLICT (name) DO UPDATE
    SET content_type = excluded.content_type, suffix = excluded.suffix,
        templates = excluded.templates, bytes_estimate = excluded.bytes_estimate,
        declared_at = excluded.declared_at
    WHERE (k.content_type, k.suffix, k.templates, k.bytes_estimate)
        IS DISTINCT FROM
        (excluded.content_type, excluded.suffix, excluded.templates, excluded.bytes_estimate);
END
$$;
COMMENT ON FUNCTION livewell.declare_export_kind IS 'Creates a kind of export or brings it up to date.';
REVOKE ALL ON FUNCTION livewell.declare_export_kind FROM PUBLIC;
