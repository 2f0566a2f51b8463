-- The name of the due check: of its singleton, of the channel that it is nudged by, and of its line
-- in the statistics.
--
-- Called by: rule_singleton_held, state_refresh; every function that names it. DUE of
--            refresh/nudges.py says the same to Python, and a test compares the two.
CREATE OR REPLACE FUNCTION livewell.due_check_name()
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT 'refresh.due'
$$;
COMMENT ON FUNCTION livewell.due_check_name IS 'The name of the singleton of the due check.';
REVOKE ALL ON FUNCTION livewell.due_check_name FROM PUBLIC;
