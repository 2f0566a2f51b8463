-- The alert rules of the outbox with their levels.
--
-- Called by: alert_rules. The condition itself is the function rule_<name>(now);
-- docs/operations/alerts/<name>.md says what to do.
CREATE OR REPLACE FUNCTION livewell.rules_outbox()
RETURNS TABLE (name text, level text, hysteresis interval, meaning text)
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN QUERY VALUES
        ('key_parked',  'P2', interval '1 hour',
         'events of a key wait behind a dead letter until a person decides'),
        ('outbox_dead', 'P2', interval '1 hour',
         'events became dead letters of a sink within the last hour'),
        ('outbox_late', 'P1', interval '15 minutes',
         'an event has been waiting for its sink for more than 5 minutes'),
        ('sink_away',   'P1', interval '15 minutes',
         'no relay has reached a sink for 5 minutes');
END
$$;
COMMENT ON FUNCTION livewell.rules_outbox IS 'The alert rules of the outbox with their levels.';
REVOKE ALL ON FUNCTION livewell.rules_outbox FROM PUBLIC;
