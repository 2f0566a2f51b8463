-- Rule queue_deep (P1): more than 1,000 jobs and watched keys that are due wait for a queue, and
-- have at every look for 30 minutes.
--
-- Called by: evaluate_rule. Index: job_ready_idx, job_suspect_idx. Never more than 1,001 of a queue
--            are counted.
-- Refreshes wait in the ledger until they may go: due_watched counts them.
CREATE OR REPLACE FUNCTION livewell.rule_queue_deep(p_now timestamptz)
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
            'queue %s: more than 1,000 jobs and due keys have been waiting for %s min', l.subject,
            floor(extract(epoch FROM p_now - l.since) / 60)
        )
    FROM livewell.lasting(
        'queue_deep',
        ARRAY(
            SELECT q.name
            FROM livewell.queue q
            LEFT JOIN livewell.due_watched(p_now) d ON d.queue = q.name
            WHERE coalesce(d.due, 0) + (
                SELECT count(*)
                FROM (
                    SELECT FROM livewell.job j
                    WHERE j.queue = q.name AND j.state = 'ready' AND j.lost = 0
                    LIMIT 1001
                ) o
            ) + (
                SELECT count(*)
                FROM (
                    SELECT FROM livewell.job j
                    WHERE j.queue = q.name AND j.state = 'ready' AND j.lost > 0
                    LIMIT 1001
                ) o
            ) > 1000
        ),
        interval '30 minutes', p_now
    ) l;
END
$$;
COMMENT ON FUNCTION livewell.rule_queue_deep IS
    'Queues for which more than 1,000 jobs and due keys have been waiting for 30 minutes.';
REVOKE ALL ON FUNCTION livewell.rule_queue_deep FROM PUBLIC;
