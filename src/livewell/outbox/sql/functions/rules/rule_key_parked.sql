-- Rule key_parked (P2): the first event of a key is a dead letter of a topic that parks, and later
-- events of the key wait for a person.
--
-- Called by: evaluate_rule. Index: event_block_due_idx, event_delivery_aside_idx.
-- Counted:   1,000 keys of a sink, and what waits behind the first 100 of them up to 1,000 each.
CREATE OR REPLACE FUNCTION livewell.rule_key_parked(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.name::text,
        format(
            'sink %s: %s%s parked since %s, and %s%s events wait behind', s.name,
            p.n, CASE WHEN p.n = 1 THEN ' key is' WHEN p.n >= 1000 THEN ' or more keys are'
                ELSE ' keys are' END,
            to_char(p.since AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
            CASE WHEN p.n > 100 OR w.most >= 1000 THEN 'at least ' ELSE '' END, w.n
        )
    FROM (SELECT o.* FROM livewell.event_sink o ORDER BY o.id LIMIT 1000) s
    CROSS JOIN LATERAL (
        SELECT count(*) AS n, min(x.since) AS since,
            (array_agg(x.key_hash ORDER BY x.since, x.key_hash))[:100] AS keys
        FROM (
            SELECT k.key_hash, k.since FROM livewell.event_block k
            WHERE k.sink = s.id AND k.retry_at = 'infinity' AND k.state = 'parked' LIMIT 1000
        ) x
    ) p
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(b.n), 0) AS n, max(b.n) AS most
        FROM unnest(p.keys) AS g (key_hash)
        CROSS JOIN LATERAL (
            SELECT count(*) AS n
            FROM (
                SELECT FROM livewell.event_delivery d
                WHERE d.sink = s.id AND d.key_hash = g.key_hash AND d.aside LIMIT 1000
            ) y
        ) b
    ) w
    WHERE p.n > 0;
END
$$;
COMMENT ON FUNCTION livewell.rule_key_parked IS
    'Sinks with keys whose events wait behind a dead letter.';
REVOKE ALL ON FUNCTION livewell.rule_key_parked FROM PUBLIC;
