-- What a worker that renders says of itself.
--
-- Called by: the worker part of exports, every few seconds, and with NULL when it ends.
-- p_report:  {rss_bytes, children_bytes, bytes_max, renders, children, spare_deaths, killed,
--            store_reason}; store_reason: why the store does not answer, NULL if it does.
CREATE OR REPLACE FUNCTION livewell.report_renderer(p_name text, p_report jsonb)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    IF p_report IS NULL THEN
        DELETE FROM livewell.export_renderer r WHERE r.name = p_name;
        RETURN;
    END IF;
    INSERT INTO livewell.export_renderer AS r (
        name, seen_at, started_at, rss_bytes, children_bytes, bytes_max, renders, children,
        spare_deaths, killed, store_reason, store_since
    )
    VALUES (
        p_name, v_now, v_now, (p_report ->> 'rss_bytes')::bigint,
        (p_report ->> 'children_bytes')::bigint, (p_report ->> 'bytes_max')::bigint,
        (p_report ->> 'renders')::bigint, (p_report ->> 'children')::integer,
        (p_report ->> 'spare_deaths')::integer, coalesce(p_report -> 'killed', '{}'),
        p_report ->> 'store_reason', CASE WHEN p_report ->> 'store_reason' IS NOT NULL THEN v_now END
    )
    ON CONFLICT (name) DO UPDATE
    SET seen_at = excluded.seen_at, rss_bytes = excluded.rss_bytes,
        children_bytes = excluded.children_bytes, bytes_max = excluded.bytes_max,
        renders = excluded.renders, children = excluded.children,
        spare_deaths = excluded.spare_deaths, killed = excluded.killed,
        store_reason = excluded.store_reason,
        store_since = CASE WHEN excluded.store_reason IS NOT NULL
            THEN coalesce(r.store_since, v_now) END;
END
$$;
COMMENT ON FUNCTION livewell.report_renderer IS
    'Writes down what a rendering worker uses, and whether it reaches the store.';
REVOKE ALL ON FUNCTION livewell.report_renderer FROM PUBLIC;
