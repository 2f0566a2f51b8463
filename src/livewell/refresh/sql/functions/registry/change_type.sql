-- Change what may be changed of a type without its file: its time to live, and when it is refreshed
-- by schedule. It holds until the file is applied again.
--
-- Called by: the API (PATCH /v1/types/NAME), as an operator; then redue_type, page by page. NULL
--            leaves as it is; p_strategy on_demand takes the expression away.
-- The due check plans the next walk (cron_due_at NULL). The version stays: what a job fetches has
-- not changed.
-- Why SECURITY DEFINER: nobody but the owner writes the registry by hand; through this an operator
-- may change these two things, within their bounds.
CREATE OR REPLACE FUNCTION livewell.change_type(
    p_name text, p_ttl interval, p_strategy text, p_cron text, p_zone text)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
BEGIN
    IF p_ttl <= interval '0' OR p_ttl > interval '400 days' THEN
        RAISE EXCEPTION 'ttl %: more than 0 and at most 400 days is allowed', p_ttl
        USING ERRCODE = 'LW003';
    END IF;
    IF p_strategy IS NOT NULL
       AND (
           p_strategy NOT IN ('on_demand', 'scheduled')
               OR (p_strategy = 'scheduled') <> (p_cron IS NOT NULL AND p_zone IS NOT NULL)) THEN
        RAISE EXCEPTION 'strategy: on_demand, or scheduled with cron and zone'
        USING ERRCODE = 'LW003';
    END IF;
    UPDATE livewell.data_type t
    SET ttl = coalesce(p_ttl, t.ttl), strategy = coalesce(p_strategy, t.strategy),
        cron = CASE WHEN p_strategy IS NULL THEN t.cron ELSE p_cron END,
        zone = CASE WHEN p_strategy IS NULL THEN t.zone ELSE p_zone END,
        cron_due_at = CASE WHEN p_strategy IS NULL THEN t.cron_due_at END,
        cron_cursor = CASE WHEN p_strategy IS NULL THEN t.cron_cursor END
    WHERE t.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.change_type IS
    'Changes the time to live and the schedule of a type until its file is applied again; false '
    'when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.change_type FROM PUBLIC;
