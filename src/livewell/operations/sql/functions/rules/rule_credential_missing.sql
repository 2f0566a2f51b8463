-- Rule credential_missing (P1): workers work the queues of an upstream, and none of them has any of
-- its credentials: none can call it.
--
-- Called by: evaluate_rule. Tables of a few rows.
-- A worker says which credentials it lacks (worker.lacks, "limiter credential"); one of an older
-- release says nothing, and counts as having them. Without any worker it is another matter:
-- queue_stalled.
CREATE OR REPLACE FUNCTION livewell.rule_credential_missing(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT m.name,
        format(
            '%s: no worker has its credential; set %s where they run', m.name,
            string_agg(c.name, ' or ' ORDER BY c.name)
        )
    FROM livewell.limiter m
    JOIN livewell.limiter_credential c ON c.limiter = m.name AND c.active
    WHERE EXISTS (
        SELECT FROM livewell.queue q
        JOIN livewell.worker w ON livewell.works_queue(w.queues, q.name) AND w.expires_at > p_now
        WHERE q.limiter = m.name
    )
    GROUP BY m.name
    HAVING NOT EXISTS (
        SELECT FROM livewell.limiter_credential o
        JOIN livewell.queue q ON q.limiter = o.limiter
        JOIN livewell.worker w ON livewell.works_queue(w.queues, q.name) AND w.expires_at > p_now
        WHERE o.limiter = m.name AND o.active AND (o.limiter || ' ' || o.name) <> ALL (w.lacks)
    );
END
$$;
COMMENT ON FUNCTION livewell.rule_credential_missing IS
    'Limiters whose workers all lack every credential of it.';
REVOKE ALL ON FUNCTION livewell.rule_credential_missing FROM PUBLIC;
