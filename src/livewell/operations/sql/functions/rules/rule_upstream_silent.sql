-- Rule upstream_silent (P1): work waits for an upstream, and for 15 minutes no call of any of its
-- credentials was allowed: it asked for silence, or its breaker is open.
--
-- Called by: evaluate_rule. Index: stat_pkey, job_ready_idx, and those of due_watched and
--            limiter_trouble.
-- A probe, or a silence that is asked for again, lets the limiter look well for a moment: what was
-- silent at the last look stays so until something was completed.
-- Work waits: a watched key is due, or a job is ready. What nobody waits for may be silent. A
-- paused upstream or queue stands still because somebody said so.
CREATE OR REPLACE FUNCTION livewell.rule_upstream_silent(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_due   text[] := ARRAY(SELECT d.queue FROM livewell.due_watched(p_now) d);
BEGIN
    RETURN QUERY
    SELECT l.subject,
        format(
            '%s: no call has been allowed for %s min%s', l.subject,
            floor(extract(epoch FROM p_now - l.since) / 60), coalesce(': ' || t.words, '')
        )
    FROM livewell.lasting(
        'upstream_silent',
        ARRAY(
            SELECT m.name FROM livewell.limiter m
            WHERE EXISTS (
                SELECT FROM livewell.limiter_credential c WHERE c.limiter = m.name AND c.active
            )
                AND (
                    NOT EXISTS (
                        SELECT FROM livewell.limiter_credential c
                        WHERE c.limiter = m.name
                            AND c.active
                            AND c.breaker = 'closed'
                            AND coalesce(c.quiet_until <= p_now, true)
                    )
                    OR EXISTS (
                        SELECT FROM livewell.alert_lasting a
                        WHERE a.rule = 'upstream_silent'
                            AND a.subject = m.name
                            AND NOT EXISTS (
                                SELECT FROM livewell.queue q
                                JOIN livewell.stat s ON s.queue = q.name
                                WHERE q.limiter = m.name
                                    AND s.minute > p_now - interval '2 minutes'
                                    AND s.outcome = 'succeeded'
                            )
                    )
                )
                AND EXISTS (
                    SELECT FROM livewell.queue q
                    WHERE q.limiter = m.name
                        AND q.paused_at IS NULL
                        AND (
                            q.name = ANY (v_due)
                            OR EXISTS (
                                SELECT FROM livewell.job j
                                WHERE j.queue = q.name AND j.state = 'ready' AND j.lost = 0
                            )
                        )
                )
                AND NOT EXISTS (
                    SELECT FROM livewell.upstream u
                    WHERE u.name = m.name AND u.paused_at IS NOT NULL
                )
        ),
        interval '15 minutes', p_now
    ) l
    LEFT JOIN LATERAL (
        SELECT CASE
            WHEN o.quiet_until IS NOT NULL
                THEN to_char(
                    o.quiet_until AT TIME ZONE 'UTC',
                    '"it asked for silence until "YYYY-MM-DD HH24:MI:SS" UTC"'
                )
            ELSE format(
                'its breaker is %s%s', replace(o.breaker, '_', ' '),
                coalesce(' (' || o.cause || ')', '')
            )
        END AS words
        FROM livewell.limiter_trouble(l.subject, p_now) o
        LIMIT 1
    ) t ON true;
END
$$;
COMMENT ON FUNCTION livewell.rule_upstream_silent IS
    'Limiters of which no credential may make a call for 15 minutes, while work waits.';
REVOKE ALL ON FUNCTION livewell.rule_upstream_silent FROM PUBLIC;
