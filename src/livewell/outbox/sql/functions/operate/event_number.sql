-- The number of an event from its id, or from the number itself; NULL if it is no id of ours.
--
-- Called by: show_event, why_event.
CREATE OR REPLACE FUNCTION livewell.event_number(p_id text)
RETURNS bigint
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT (regexp_match(p_id, '^(?:([0-9a-f]{8})-)?([0-9]{1,18})$'))[2]::bigint
    FROM livewell.event_source s
    WHERE coalesce((regexp_match(p_id, '^([0-9a-f]{8})-'))[1], s.install) = s.install
$$;
COMMENT ON FUNCTION livewell.event_number IS 'The number of an event, from its id.';
REVOKE ALL ON FUNCTION livewell.event_number FROM PUBLIC;
