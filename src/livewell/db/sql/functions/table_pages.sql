-- How many pages a table has now, and which share of them (in percent) to look at so that about
-- p_pages are read.
--
-- Called by: sample_queue, sample_refresh, sample_outbox, count_dead_events. Asks the file system,
--            not the statistics: right at once, also after a million rows came in a minute.
CREATE OR REPLACE FUNCTION livewell.table_pages(p_table regclass, p_pages integer)
RETURNS TABLE (pages bigint, percent float8)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_variable
BEGIN
    pages :=
        pg_catalog.pg_relation_size(p_table) / pg_catalog.current_setting('block_size')::bigint;
    percent := least(100.0, 100.0 * p_pages / greatest(pages, 1));
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.table_pages IS
    'The size of a table in pages, and the share of it that is about p_pages.';
REVOKE ALL ON FUNCTION livewell.table_pages FROM PUBLIC;
