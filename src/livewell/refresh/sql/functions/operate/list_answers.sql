-- The last answers for one key, the newest first; sixteen at most.
--
-- Called by: the dashboard. Index: refresh_event_pkey.
CREATE OR REPLACE FUNCTION livewell.list_answers(p_type text, p_key text)
RETURNS TABLE (at timestamptz, outcome text, bytes bigint)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT e.at, e.outcome, e.bytes FROM livewell.refresh_event e
    WHERE e.data_type = p_type AND e.key = p_key
    ORDER BY e.at DESC, e.slot DESC
$$;
COMMENT ON FUNCTION livewell.list_answers IS 'The last sixteen answers for one key.';
REVOKE ALL ON FUNCTION livewell.list_answers FROM PUBLIC;
