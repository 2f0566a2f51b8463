-- 0.8.0: the list of schedules says what is paused, whatever else a schedule does.
-- Never edited after release; changes are a new numbered file.

-- It gets another column. A new database does not have it yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.list_schedules()') IS NOT NULL THEN
        DROP FUNCTION livewell.list_schedules();
    END IF;
END
$drop$;
