-- Drop the versions of a document up to one, but for those that an unfinished export is to render.
-- Answers how many bytes the user has now.
--
-- p_room:    how many they may have afterwards. If they would still have more, nothing is dropped: old
--            versions stay where no new one comes.
-- Called by: change_resume, which has locked the user's row and the document.
-- Index:     resume_version_pkey
CREATE OR REPLACE FUNCTION livewell.drop_resume_versions(
    p_user text, p_id uuid, p_upto integer, p_room bigint
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_used  pg_catalog.int8;
BEGIN
    WITH old AS MATERIALIZED (
        SELECT v.version, v.bytes FROM livewell.resume_version v
        WHERE v.document_id = p_id AND v.version <= p_upto
            AND NOT EXISTS (
                SELECT FROM livewell.export e
                WHERE e.user_id = p_user AND e.kind = 'resume' AND e.document_id = p_id::pg_catalog.text
                    AND e.document_version = v.version::pg_catalog.text
                    AND e.state IN ('waiting', 'running'))
    ), gone AS (
        DELETE FROM livewell.resume_version v
        USING old o, livewell.resume_user u
        WHERE v.document_id = p_id AND v.version = o.version
            AND u.user_id = p_user
            AND u.bytes - (SELECT sum(a.bytes) FROM old a) <= p_room
        RETURNING v.bytes
    )
    UPDATE livewell.resume_user u
    SET bytes = u.bytes - (SELECT coalesce(sum(g.bytes), 0) FROM gone g)
    WHERE u.user_id = p_user
    RETURNING u.bytes INTO v_used;
    RETURN v_used;
END
$$;
COMMENT ON FUNCTION livewell.drop_resume_versions IS
    'Drops old versions of a document that no unfinished export names.';
REVOKE ALL ON FUNCTION livewell.drop_resume_versions FROM PUBLIC;
