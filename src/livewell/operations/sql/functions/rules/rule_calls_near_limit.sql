-- Rule calls_near_limit (P2): calls have been at more than 5/6 of their rate (250 of 300 a minute)
-- at every look for 15 minutes, and more work waits: the limit is what holds it up.
--
-- Called by: evaluate_rule. Index: limiter_grant_idx, job_ready_idx.
CREATE OR REPLACE FUNCTION livewell.rule_calls_near_limit(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT l.subject,
        format(
            '%s: more than 5/6 of the calls that its limit allows have been made for %s min, '
            'and more work waits',
            l.subject, floor(extract(epoch FROM p_now - l.since) / 60)
        )
    FROM livewell.lasting(
        'calls_near_limit',
        ARRAY(
            SELECT livewell.limiter_subject(m.name, m.credential) FROM livewell.list_limiters() m
            WHERE m.active
                AND m.spent > m.rate_calls * 5.0 / 6
                AND EXISTS (
                    SELECT FROM unnest(m.queues) AS q (name)
                    JOIN livewell.job j ON j.queue = q.name AND j.state = 'ready' AND j.lost = 0
                )
        ),
        interval '15 minutes', p_now
    ) l;
END
$$;
COMMENT ON FUNCTION livewell.rule_calls_near_limit IS
    'Limiters whose calls have been near their limit for 15 minutes while work waits.';
REVOKE ALL ON FUNCTION livewell.rule_calls_near_limit FROM PUBLIC;
