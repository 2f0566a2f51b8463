-- Which of these files of the store belong to an export of ours and have no row: nothing will ever
-- point to them.
--
-- Called by: the duty livewell.exports.sweep, with a page of what the store lists.
-- A row is committed before its file is written, so a file that was listed before this looks has its
-- row, or has lost it: a process that was stopped while it wrote, and whose file was cleaned
-- meanwhile, leaves such a file.
-- Of exports that this database does not know nothing is said: another installation may use the same
-- folder or bucket, and its files are not ours to remove.
-- Index:     export_file_pkey, export_pkey
CREATE OR REPLACE FUNCTION livewell.find_unknown_files(p_paths text[])
RETURNS SETOF text
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
BEGIN
    RETURN QUERY
    SELECT p FROM unnest(p_paths[1:1000]) AS p
    WHERE NOT EXISTS (SELECT FROM livewell.export_file f WHERE f.path = p)
        AND EXISTS (SELECT FROM livewell.export e WHERE e.id = split_part(p, '/', 2)::uuid);
END
$$;
COMMENT ON FUNCTION livewell.find_unknown_files IS 'Files of our exports that no row knows.';
REVOKE ALL ON FUNCTION livewell.find_unknown_files FROM PUBLIC;
