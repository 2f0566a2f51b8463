-- A page of everybody's exports, the newest first, for operators: no names, no documents, no
-- options (E15).
--
-- Called by: CLI `exports list` and `show`, the dashboard.
-- Index:     export_newest_idx; export_pkey for one id, so plans are made for the values given.
CREATE OR REPLACE FUNCTION livewell.find_exports(
    p_state text DEFAULT NULL, p_user text DEFAULT NULL, p_before timestamptz DEFAULT NULL,
    p_limit integer DEFAULT 50, p_id uuid DEFAULT NULL
)
RETURNS TABLE (
    id uuid, user_id text, kind text, state text, reason text, progress smallint, attempt smallint,
    job_id bigint, bytes bigint, pages integer, downloads integer, reserved_bytes bigint,
    created_at timestamptz, started_at timestamptz, finished_at timestamptz,
    expires_at timestamptz, removed_at timestamptz, template text
)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT e.id, e.user_id, e.kind, livewell.export_verdict(e.state, e.expires_at, v_now), e.reason,
        e.progress, e.attempt, e.job_id, e.bytes, e.pages, e.downloads, e.reserved_bytes,
        e.created_at, e.started_at, e.finished_at, e.expires_at, e.removed_at, e.template
    FROM livewell.export e
    WHERE (p_id IS NULL OR e.id = p_id)
        AND (p_user IS NULL OR e.user_id = p_user)
        AND (p_before IS NULL OR e.created_at < p_before)
        AND (p_state IS NULL OR livewell.export_verdict(e.state, e.expires_at, v_now) = p_state)
    ORDER BY e.created_at DESC, e.id DESC
    LIMIT least(greatest(p_limit, 1), 500);
END
$$;
COMMENT ON FUNCTION livewell.find_exports IS
    'Exports of all users for operators, without anything of their documents.';
REVOKE ALL ON FUNCTION livewell.find_exports FROM PUBLIC;
