-- Failures since an instant by reason, as pairs for a table.
--
-- Called by: state_exports.
-- Index:     export_ended_idx
CREATE OR REPLACE FUNCTION livewell.list_export_failures(p_since timestamptz)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    RETURN coalesce((
        SELECT jsonb_agg(jsonb_build_object('reason', r.reason, 'n', r.n) ORDER BY r.n DESC, r.reason)
        FROM (
            SELECT f.reason, count(*) AS n FROM (
                SELECT e.reason FROM livewell.export e
                WHERE e.finished_at > p_since AND e.state = 'failed'
                ORDER BY e.finished_at DESC LIMIT 20000
            ) f
            GROUP BY f.reason
        ) r), '[]');
END
$$;
COMMENT ON FUNCTION livewell.list_export_failures IS 'How often exports failed, by reason.';
REVOKE ALL ON FUNCTION livewell.list_export_failures FROM PUBLIC;
