-- Refresh one key now, whatever its age, because an operator says so; audited in the same
-- transaction.
--
-- Called by: the dashboard. p_actor: who asks.
-- Answer:    as read_key has it. Limits, breakers, pauses and back-offs hold as for anybody: demand
--            says which of them stands in the way.
CREATE OR REPLACE FUNCTION livewell.refresh_key(p_type text, p_key text, p_actor text)
RETURNS TABLE (demand text, queue text, throttled text, retry_at timestamptz)
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    SELECT r.demand, r.queue, r.throttled, r.retry_at INTO demand, queue, throttled, retry_at
    FROM livewell.read_key(p_type, p_key, 0) AS r;
    PERFORM livewell.audit_act(
        p_actor, NULL, 'types.refresh', concat_ws(' ', p_type, p_key), '{}',
        coalesce(throttled, demand), NULL, NULL, (demand = 'queued')::integer);
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.refresh_key IS
    'Demands a refresh of one key for an operator, and says what became of it; audited.';
REVOKE ALL ON FUNCTION livewell.refresh_key FROM PUBLIC;
