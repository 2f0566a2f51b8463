-- Set when a scheduled type is next due, if that is not known: it is new, or its expression was changed (whoever changes it sets cron_due_at to NULL).
--
-- Called by: refresh/due/check.py, which computes the instant from the database's clock. p_cron and p_zone: what it was computed from; if they changed meanwhile nothing is done.
CREATE OR REPLACE FUNCTION livewell.plan_cron(p_type text, p_cron text, p_zone text, p_due timestamptz)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.data_type t SET cron_due_at = p_due WHERE t.name = p_type AND t.cron = p_cron AND t.zone = p_zone AND t.cron_due_at IS NULL;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.plan_cron IS 'Sets when a scheduled type is next due, unless that is known.';
REVOKE ALL ON FUNCTION livewell.plan_cron FROM PUBLIC;
