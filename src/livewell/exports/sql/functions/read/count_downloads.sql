-- Count a download of each of these exports.
--
-- Called by: Exports.count_downloads, for the files that a ZIP has.
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.count_downloads(p_user text, p_ids uuid[])
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    UPDATE livewell.export e SET downloads = e.downloads + 1
    WHERE e.user_id = p_user AND e.id = ANY (ARRAY(
        SELECT o.id FROM livewell.export o
        WHERE o.id = ANY (p_ids[1:10]) AND o.user_id = p_user
        ORDER BY o.id FOR NO KEY UPDATE));
END
$$;
COMMENT ON FUNCTION livewell.count_downloads IS 'Counts downloads of exports of one user.';
REVOKE ALL ON FUNCTION livewell.count_downloads FROM PUBLIC;
