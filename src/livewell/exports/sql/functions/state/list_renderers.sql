-- Workers that render, as they last reported.
--
-- Called by: state_exports.
CREATE OR REPLACE FUNCTION livewell.list_renderers(p_now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    RETURN coalesce((
        SELECT jsonb_agg(jsonb_build_object(
            'name', r.name, 'seen_seconds', extract(epoch FROM p_now - r.seen_at)::float8,
            'rss_bytes', r.rss_bytes, 'children_bytes', r.children_bytes,
            'bytes_max', r.bytes_max, 'renders', r.renders, 'children', r.children,
            'spare_deaths', r.spare_deaths, 'killed', r.killed, 'store_reason', r.store_reason,
            'store_seconds', extract(epoch FROM p_now - r.store_since)::float8) ORDER BY r.name)
        FROM (
            SELECT w.* FROM livewell.export_renderer w
            WHERE w.seen_at > p_now - interval '2 minutes' ORDER BY w.name LIMIT 1000
        ) r), '[]');
END
$$;
COMMENT ON FUNCTION livewell.list_renderers IS 'What workers that render said of themselves last.';
REVOKE ALL ON FUNCTION livewell.list_renderers FROM PUBLIC;
