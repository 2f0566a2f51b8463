-- The rules that watch the system itself: what each looks for, how urgent it is, and how long its
-- condition must be gone before it may fire again (R23).
--
-- Called by: alert_rules. The condition itself is the function rule_<name>(now);
-- docs/operations/alerts/<name>.md says what to do.
CREATE OR REPLACE FUNCTION livewell.rules_operations()
RETURNS TABLE (name text, level text, hysteresis interval, meaning text)
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN QUERY VALUES
        ('background_waiting',    'P2', interval '1 hour',
         'a background job has been waiting for more than an hour'),
        ('breaker_open',          'P1', interval '15 minutes',
         'an upstream fails, and its calls are stopped'),
        ('budget_nine_tenths',    'P1', interval '1 hour',
         'more than 90 % of a budget is used'),
        ('budget_reached',        'P0', interval '1 hour',
         'a budget is used up, and its calls are stopped'),
        ('budget_three_quarters', 'P2', interval '1 hour',
         'more than 75 % of a budget is used'),
        ('calls_near_limit',      'P2', interval '15 minutes',
         'calls have been at more than 5/6 of their limit for 15 minutes, and '
         'more work waits'),
        ('credential_missing',    'P1', interval '15 minutes',
         'workers work the queues of an upstream, and none has a credential of it'),
        ('key_overdue',           'P1', interval '15 minutes',
         'a watched key has been due for more than five times its time to live'),
        ('queue_deep',            'P1', interval '30 minutes',
         'more than 1,000 jobs and due keys have been waiting for a queue for 30 minutes'),
        ('queue_stalled',         'P1', interval '10 minutes',
         'nothing was completed in a queue for 10 minutes, and work waits'),
        ('schedule_late',         'P0', interval '5 minutes',
         'a schedule has not run when it should have'),
        ('singleton_held',        'P0', interval '10 minutes',
         'one run has held a singleton for more than 10 minutes'),
        ('size_underestimated',   'P2', interval '1 day',
         'answers of a type are more than twice as large as its file says'),
        ('type_silent',           'P1', interval '1 hour',
         'a type that is watched has not been refreshed for 24 hours'),
        ('upstream_silent',       'P1', interval '15 minutes',
         'work waits for an upstream, and no call of it was allowed for 15 minutes'),
        ('warning_rate',          'P2', interval '2 hours',
         'the same failure was tolerated five times within an hour'),
        ('watched_not_fresh',     'P1', interval '15 minutes',
         'more than half of what is watched from an upstream, by viewers, has '
         'not been fresh for 5 minutes');
END
$$;
COMMENT ON FUNCTION livewell.rules_operations IS
    'The alert rules that watch the system itself, with their levels.';
REVOKE ALL ON FUNCTION livewell.rules_operations FROM PUBLIC;
