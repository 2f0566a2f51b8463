-- The instant since which usage counts against a limiter's budget: a rolling span ago, or the last
-- reset of the day in its zone.
--
-- Called by: plan_upstreams; limiter_room, limiter_budget, book_usage, list_limiters.
-- Rolling: whole hours, and one more, so that the oldest hour counts until all of it is past (721
--          hours for 30 days): never too little is counted.
-- The day: the latest reset that is not in the future. A reset time that a change to summer time
-- leaves out is taken as Postgres takes it, an hour later.
CREATE OR REPLACE FUNCTION livewell.budget_since(p_limiter livewell.limiter, p_now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $$
DECLARE
    v_local timestamp;
BEGIN
    IF p_limiter.budget_seconds IS NOT NULL THEN
        RETURN date_trunc('hour', p_now) - p_limiter.budget_seconds * interval '1 second';
    END IF;
    v_local :=
        date_trunc('day', p_now AT TIME ZONE p_limiter.budget_zone) + p_limiter.budget_resets;
    IF v_local AT TIME ZONE p_limiter.budget_zone > p_now THEN
        v_local := v_local - interval '1 day';
    END IF;
    RETURN v_local AT TIME ZONE p_limiter.budget_zone;
END
$$;
COMMENT ON FUNCTION livewell.budget_since IS 'Since when usage counts against the budget.';
REVOKE ALL ON FUNCTION livewell.budget_since FROM PUBLIC;
