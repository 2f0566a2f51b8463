-- Rule watched_not_fresh (P1): of what people watch from an upstream, more than half is not fresh,
-- and was not at every look for 5 minutes.
--
-- Called by: evaluate_rule. Index: viewer_session_seen_idx, subscription_pkey, ledger_pkey.
-- By viewers: a key that a hundred people watch counts a hundred times, so a dead key that few
-- watch among thousands raises nothing.
-- Not fresh: stale, failing, lagging, or no value yet. That the upstream knows no such key is an
-- answer, and unverifiable is as fresh as can be told.
-- By upstream: one that is silent is named, and a healthy one beside it is not. What is paused is
-- not fresh because somebody said so.
-- Bounded:    the 200 sessions that were seen last (each is seen every minute, so that is a fair
--             sample) and 200 keys of each: of these looks 500 are judged, of each upstream in
--             turn, so that a small one beside a large one is seen whole. Within an upstream a hash
--             chooses, so that each look has the same chance: with 500 of them a share of one half
--             is off by 2 %.
--             A verdict takes 10 µs, and several times that on a busy machine: 5,000 of them took
--             442 ms there.
CREATE OR REPLACE FUNCTION livewell.rule_watched_not_fresh(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_upstreams text[];
    v_shares    numeric[];
BEGIN
    WITH types AS MATERIALIZED (
        -- Without what makes a type's row large: it is handed to a function for each key.
        SELECT t.name, t.upstream,
            jsonb_populate_record(t, '{"definition": {}, "columns": []}') AS slim
        FROM livewell.data_type t
        JOIN livewell.upstream u ON u.name = t.upstream
        WHERE t.paused_at IS NULL AND u.paused_at IS NULL
    ),
    looks AS MATERIALIZED (
        SELECT s.data_type, s.key, hashtextextended(s.key, uuid_hash(live.id)) AS lot
        FROM (
            SELECT v.id FROM livewell.viewer_session v
            WHERE v.seen_at > p_now - interval '5 minutes'
            ORDER BY v.seen_at DESC LIMIT 200
        ) live
        CROSS JOIN LATERAL (
            SELECT b.data_type, b.key FROM livewell.subscription b
            WHERE b.session_id = live.id
            LIMIT 200
        ) s
    ),
    watched AS MATERIALIZED (
        SELECT o.data_type, o.key, count(*) AS viewers
        FROM (
            SELECT k.data_type, k.key
            FROM looks k
            JOIN types t ON t.name = k.data_type
            ORDER BY row_number() OVER (PARTITION BY t.upstream ORDER BY k.lot) LIMIT 500
        ) o
        GROUP BY o.data_type, o.key
    ),
    judged AS MATERIALIZED (
        SELECT t.upstream, w.viewers, l.missing AS absent,
            livewell.verdict(t.slim, l, p_now) AS verdict
        FROM watched w
        JOIN types t ON t.name = w.data_type
        JOIN livewell.ledger l ON l.data_type = w.data_type AND l.key = w.key
    )
    SELECT array_agg(s.upstream), array_agg(s.share) INTO v_upstreams, v_shares
    FROM (
        SELECT j.upstream,
            sum(j.viewers) FILTER (
                WHERE j.verdict NOT IN ('fresh', 'unverifiable')
                    AND NOT (j.absent AND j.verdict = 'missing')
            ) / sum(j.viewers) AS share
        FROM judged j
        GROUP BY j.upstream
    ) s
    WHERE s.share > 0.5;
    RETURN QUERY
    SELECT l.subject,
        format(
            '%s: %s %% of what is watched, by viewers, is not fresh, and has not been for %s min',
            l.subject, round(100 * v_shares[array_position(v_upstreams, l.subject)]),
            floor(extract(epoch FROM p_now - l.since) / 60)
        )
    FROM livewell.lasting(
        'watched_not_fresh', coalesce(v_upstreams, '{}'), interval '5 minutes', p_now
    ) l;
END
$$;
COMMENT ON FUNCTION livewell.rule_watched_not_fresh IS
    'Upstreams of which more than half of what is watched, by viewers, has not been fresh for 5 '
    'minutes.';
REVOKE ALL ON FUNCTION livewell.rule_watched_not_fresh FROM PUBLIC;
