-- Calls by type. Never edited after release; changes are a new numbered file.

-- Calls that were answered, counted where their first key is. NULL: nobody counted them before 0.8.
ALTER TABLE livewell.refresh_count ADD COLUMN calls bigint;

DO $drop$
BEGIN
    -- It answers with a column more.
    IF to_regprocedure('livewell.list_refresh_hours(text)') IS NOT NULL THEN
        DROP FUNCTION livewell.list_refresh_hours(text);
    END IF;
END
$drop$;
