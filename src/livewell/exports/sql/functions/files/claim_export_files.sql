-- Files that nothing points to, for a cleaner to remove; each to one cleaner per minute.
--
-- Called by: the duty livewell.exports.cleanup, CLI `exports cleanup`. Then: the file, then
--            forget_export_file. A cleaner that dies in between leaves the row, and the next one
--            removes the file that may be gone already (E11).
-- An orphan is a file that was to be written, of an attempt that is over. p_grace_seconds: how long
-- an attempt that lost its job may go on writing before it notices; a lease is enough.
-- Index:     export_file_writing_idx, export_file_removing_idx, job_pkey
-- Why the job is looked for behind the lock of the file: finish_export turns the row to stored and
-- ends the job in one transaction; a row that is locked here and still says writing is not finished.
CREATE OR REPLACE FUNCTION livewell.claim_export_files(p_limit integer, p_grace_seconds float8)
RETURNS TABLE (o_path text, o_user text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_limit     integer := least(greatest(p_limit, 1), 1000);
    v_old       text[];
BEGIN
    v_old := ARRAY(
        SELECT f.path FROM livewell.export_file f
        WHERE f.state = 'writing' AND f.written_at <= v_now - p_grace_seconds * interval '1 second'
        ORDER BY f.written_at LIMIT v_limit FOR UPDATE SKIP LOCKED);
    UPDATE livewell.export_file f SET state = 'removing', given_up_at = v_now
    WHERE f.path = ANY (v_old)
        AND f.state = 'writing'
        AND NOT EXISTS (
            SELECT FROM livewell.job j
            WHERE j.id = f.job_id AND j.fence = f.fence AND j.state = 'running'
        );
    RETURN QUERY
    UPDATE livewell.export_file f SET claimed_at = v_now
    FROM (
        SELECT o.path FROM livewell.export_file o
        WHERE o.state = 'removing'
            AND (o.claimed_at IS NULL OR o.claimed_at < v_now - interval '1 minute')
        ORDER BY o.claimed_at NULLS FIRST LIMIT v_limit FOR UPDATE SKIP LOCKED
    ) c
    WHERE f.path = c.path
    RETURNING f.path, f.user_id;
END
$$;
COMMENT ON FUNCTION livewell.claim_export_files IS
    'Takes up files that are to be removed: deleted, expired, or left behind by an attempt.';
REVOKE ALL ON FUNCTION livewell.claim_export_files FROM PUBLIC;
