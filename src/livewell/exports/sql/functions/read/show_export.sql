-- One export of a user, with its steps after a number; NULL if the user has none with that id.
--
-- Called by: Exports.show, GET /v1/exports/{id}, follow_exports.
-- The state is a verdict: finished turns to expired at expires_at, whether a cleaner runs or not;
-- an export whose job ended elsewhere is ended first.
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.show_export(p_user text, p_id uuid, p_after bigint DEFAULT 0)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_export    livewell.export;
    v_retry     pg_catalog.timestamptz;
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id AND e.user_id = p_user;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF v_export.state IN ('waiting', 'running') THEN
        SELECT CASE WHEN j.state = 'delayed' THEN j.run_at END INTO v_retry
        FROM livewell.job j WHERE j.id = v_export.job_id;
        IF NOT FOUND AND livewell.settle_lost_exports(p_user) > 0 THEN
            SELECT e.* INTO v_export FROM livewell.export e
            WHERE e.id = p_id AND e.user_id = p_user;
        END IF;
    END IF;
    RETURN livewell.export_document(v_export, v_now) || jsonb_build_object(
        'retry_at', v_retry,
        'steps', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'seq', s.step -> 0, 'progress', s.step -> 1, 'state', s.step -> 2,
                'at', s.step -> 3, 'attempt', s.step -> 4) ORDER BY s.place), '[]')
            FROM jsonb_array_elements(v_export.steps) WITH ORDINALITY AS s (step, place)
            WHERE (s.step ->> 0)::bigint > p_after));
END
$$;
COMMENT ON FUNCTION livewell.show_export IS 'One export of a user, and how it came to be so.';
REVOKE ALL ON FUNCTION livewell.show_export FROM PUBLIC;
