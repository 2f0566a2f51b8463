-- The figures of the last minutes, the oldest first.
--
-- Called by: the dashboard. Index: state_minute_pkey.
CREATE OR REPLACE FUNCTION livewell.list_minutes(p_minutes integer)
RETURNS TABLE (minute timestamptz, figures jsonb)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_since timestamptz := livewell.now() - least(p_minutes, 2880) * interval '1 minute';
BEGIN
    RETURN QUERY
    SELECT m.minute, m.figures FROM livewell.state_minute m
    WHERE m.minute > v_since
    ORDER BY m.minute LIMIT 2880;
END
$$;
COMMENT ON FUNCTION livewell.list_minutes IS 'The figures of so many last minutes.';
REVOKE ALL ON FUNCTION livewell.list_minutes FROM PUBLIC;
