-- From when on periodic work is late: two intervals and a minute after it last happened (R24),
-- which is one interval and a minute after it was due.
--
-- Called by: list_schedules() and late_schedules().
CREATE OR REPLACE FUNCTION livewell.late_at(p_due timestamptz, p_interval interval)
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT p_due + p_interval + interval '1 minute'
$$;
COMMENT ON FUNCTION livewell.late_at IS 'The instant from which work that is due then is late.';
REVOKE ALL ON FUNCTION livewell.late_at FROM PUBLIC;
