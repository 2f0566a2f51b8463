-- Finish an export: its file is stored. The job ends in the same transaction, or none of it holds.
--
-- Called by: the task export.render, inside job.transaction(), whose last statement is finish_jobs:
--            a worker that has lost the job is fenced there, and this is rolled back.
-- p_result:  {bytes, pages, sha256 (hex), crc32, as_of}; p_days: how long it is kept, from now (E7).
-- Answer:    finished | fenced | over (it was cancelled: the file goes to the cleaner, the job ends)
CREATE OR REPLACE FUNCTION livewell.finish_export(
    p_job bigint, p_fence bigint, p_id uuid, p_path text, p_result jsonb, p_days float8
)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_export    livewell.export;
    v_bytes     bigint := (p_result ->> 'bytes')::bigint;
BEGIN
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id;
    IF NOT FOUND OR v_export.job_id <> p_job THEN
        RETURN 'fenced';
    END IF;
    PERFORM livewell.lock_export_usage(v_export.user_id);
    v_now := livewell.now();
    SELECT e.* INTO v_export FROM livewell.export e WHERE e.id = p_id FOR NO KEY UPDATE;
    IF v_export.fence <> p_fence THEN
        RETURN 'fenced';
    END IF;
    IF v_export.state <> 'running' THEN
        UPDATE livewell.export_file f SET state = 'removing', given_up_at = v_now
        WHERE f.path = p_path AND f.state = 'writing';
        RETURN 'over';
    END IF;
    UPDATE livewell.export_file f SET state = 'stored', bytes = v_bytes
    WHERE f.path = p_path AND f.export_id = p_id AND f.fence = p_fence AND f.state = 'writing';
    IF NOT FOUND THEN
        RETURN 'fenced';        -- a cleaner took it for an orphan
    END IF;
    UPDATE livewell.export e
    SET state = 'finished', progress = 100, reason = NULL, detail = NULL, reserved_bytes = 0,
        stored_bytes = v_bytes, bytes = v_bytes, pages = (p_result ->> 'pages')::integer,
        sha256 = decode(p_result ->> 'sha256', 'hex'), crc32 = (p_result ->> 'crc32')::bigint,
        as_of = (p_result ->> 'as_of')::timestamptz, finished_at = v_now,
        expires_at = v_now + p_days * interval '1 day',
        over_at = v_now + p_days * interval '1 day', seq = e.seq + 1,
        steps = livewell.next_export_steps(e, 100, 'finished', v_now, e.attempt)
    WHERE e.id = p_id;
    UPDATE livewell.export_usage u
    SET reserved_bytes = u.reserved_bytes - v_export.reserved_bytes,
        stored_bytes = u.stored_bytes + v_bytes
    WHERE u.user_id = v_export.user_id;
    PERFORM livewell.end_export_batches(
        ARRAY(SELECT m.batch_id FROM livewell.export_member m WHERE m.export_id = p_id), v_now);
    RETURN 'finished';
END
$$;
COMMENT ON FUNCTION livewell.finish_export IS
    'Finishes an export with the file that was stored for it, and settles its quota.';
REVOKE ALL ON FUNCTION livewell.finish_export FROM PUBLIC;
