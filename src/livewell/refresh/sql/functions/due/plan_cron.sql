-- Plan the walk of a scheduled type, as the due check of 0.6.0 does it. Goes with 0.8.
--
-- Called by: the due check of workers of 0.6.0, which reads the cron text. Schedulers since 0.7.0 call
--            plan_schedule() themselves, with the true gap.
CREATE OR REPLACE FUNCTION livewell.plan_cron(
    p_type text, p_cron text, p_zone text, p_due timestamptz)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    RETURN livewell.plan_schedule('walk.' || p_type, p_cron, p_zone, p_due, interval '1 day');
END
$$;
COMMENT ON FUNCTION livewell.plan_cron IS 'Sets when a scheduled type walks next, for workers of 0.6.0.';
REVOKE ALL ON FUNCTION livewell.plan_cron FROM PUBLIC;
