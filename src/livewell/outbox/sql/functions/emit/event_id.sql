-- The id of an event as receivers see it: who numbered it, and its number.
--
-- Called by: many functions.
CREATE OR REPLACE FUNCTION livewell.event_id(p_number bigint)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT s.install || '-' || p_number FROM livewell.event_source s
$$;
COMMENT ON FUNCTION livewell.event_id IS 'The id of an event, from its number.';
REVOKE ALL ON FUNCTION livewell.event_id FROM PUBLIC;
