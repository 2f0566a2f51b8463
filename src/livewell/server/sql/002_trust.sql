-- 0.6.0: lists of keys have pages.
-- Never edited after release; changes are a new numbered file.

-- It gets a parameter with a default: calls as before still fit, and there must not be two that do. A new database does not have it yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.list_keys(boolean, integer)') IS NOT NULL THEN
        DROP FUNCTION livewell.list_keys(boolean, integer);
    END IF;
END
$drop$;
