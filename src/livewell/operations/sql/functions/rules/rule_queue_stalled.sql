-- Rule queue_stalled (P1): work has been waiting for a queue, as a job or as a watched key that is
-- due, at every look for 10 minutes, and nothing was completed in that time.
--
-- Called by: evaluate_rule. Index: job_ready_idx, job_suspect_idx, stat_pkey.
-- Completed: succeeded, by the workers' own counts (stat), which they write every few seconds.
--            Attempts that fail complete nothing.
-- A paused queue stands still because somebody said so.
CREATE OR REPLACE FUNCTION livewell.rule_queue_stalled(p_now timestamptz)
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
            'queue %s: work has been waiting for %s min, and nothing was completed', l.subject,
            floor(extract(epoch FROM p_now - l.since) / 60)
        )
    FROM livewell.lasting(
        'queue_stalled',
        ARRAY(
            SELECT q.name
            FROM livewell.queue q
            LEFT JOIN livewell.due_watched(p_now) d ON d.queue = q.name
            WHERE q.paused_at IS NULL
                AND (
                    d.due > 0
                    OR EXISTS (
                        SELECT FROM livewell.job j
                        WHERE j.queue = q.name AND j.state = 'ready' AND j.lost = 0
                    )
                    OR EXISTS (
                        SELECT FROM livewell.job j
                        WHERE j.queue = q.name AND j.state = 'ready' AND j.lost > 0
                    )
                )
                AND NOT EXISTS (
                    SELECT FROM livewell.stat s
                    WHERE s.minute > p_now - interval '10 minutes'
                        AND s.queue = q.name
                        AND s.outcome = 'succeeded'
                )
        ),
        interval '10 minutes', p_now
    ) l;
END
$$;
COMMENT ON FUNCTION livewell.rule_queue_stalled IS
    'Queues with work waiting and nothing completed for 10 minutes.';
REVOKE ALL ON FUNCTION livewell.rule_queue_stalled FROM PUBLIC;
