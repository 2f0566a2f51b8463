-- Begin an attempt: what is to be made, for whom.
--
-- Called by: the task export.render, first.
-- Answer:    {answer: begun, user, kind, document, version, options, …} | {answer: fenced} |
--            {answer: over, state}: nothing is to be made any more (cancelled, deleted, or the id is
--            unknown), and the job may end.
-- A job that is redriven from the dead letters revives its export: it reserves again what it gave
-- back. If there is no room, or the same export was asked for again meanwhile, it stays failed.
CREATE OR REPLACE FUNCTION livewell.begin_export(
    p_worker bigint, p_job bigint, p_fence bigint, p_id uuid, p_bytes_max bigint
)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_usage     livewell.export_usage;
    v_export    livewell.export;
    v_kind      livewell.export_kind;
    v_reserve   bigint;
BEGIN
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id;
    IF NOT FOUND OR v_export.job_id <> p_job THEN
        RETURN jsonb_build_object('answer', 'over', 'state', NULL);
    END IF;
    v_usage := livewell.lock_export_usage(v_export.user_id);
    v_now := livewell.now();
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id FOR NO KEY UPDATE;
    IF NOT livewell.owns_export_job(p_worker, p_job, p_fence) THEN
        RETURN jsonb_build_object('answer', 'fenced');
    END IF;
    SELECT k.* INTO v_kind FROM livewell.export_kind k WHERE k.name = v_export.kind;
    IF v_export.state = 'failed' THEN
        v_reserve := v_kind.bytes_estimate;
        IF EXISTS (
            SELECT FROM livewell.export s
            WHERE s.user_id = v_export.user_id AND s.kind = v_export.kind
                AND s.document_id = v_export.document_id
                AND s.document_version = v_export.document_version
                AND s.options_hash = v_export.options_hash AND s.state IN ('waiting', 'running')
        ) OR v_usage.stored_bytes + v_usage.reserved_bytes + v_reserve > p_bytes_max THEN
            RETURN jsonb_build_object('answer', 'over', 'state', v_export.state);
        END IF;
        UPDATE livewell.export_usage u SET reserved_bytes = u.reserved_bytes + v_reserve
        WHERE u.user_id = v_export.user_id;
        v_export.reserved_bytes := v_reserve;
    ELSIF v_export.state NOT IN ('waiting', 'running') THEN
        RETURN jsonb_build_object('answer', 'over', 'state', v_export.state);
    END IF;
    UPDATE livewell.export e
    SET state = 'running', fence = p_fence, attempt = least(e.attempt + 1, 32767), progress = 0,
        reserved_bytes = v_export.reserved_bytes, started_at = coalesce(e.started_at, v_now),
        finished_at = NULL, over_at = NULL, seq = e.seq + 1,
        steps = livewell.next_export_steps(
            e, 0, 'running', v_now, least(e.attempt + 1, 32767))
    WHERE e.id = p_id;
    RETURN jsonb_build_object(
        'answer', 'begun', 'user', v_export.user_id, 'kind', v_export.kind,
        'document', v_export.document_id, 'version', v_export.document_version,
        'options', v_export.options, 'attempt', v_export.attempt + 1,
        'content_type', v_kind.content_type, 'suffix', v_kind.suffix);
END
$$;
COMMENT ON FUNCTION livewell.begin_export IS
    'Begins an attempt of an export for the worker that holds its job.';
REVOKE ALL ON FUNCTION livewell.begin_export FROM PUBLIC;
