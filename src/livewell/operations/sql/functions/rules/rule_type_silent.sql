-- Rule type_silent (P1): a type that somebody watches has a stale key, and none of its keys was
-- refreshed for 24 hours.
--
-- Called by: evaluate_rule. Index: viewer_session_seen_idx, subscription_pkey, refresh_count_pkey,
--            ledger_pkey.
-- Stale: a type with a long time to live needs no refresh for days, and that is nothing to report.
--        For 10 minutes: somebody who comes back to a type that nobody has watched for a week finds
--        it
-- stale too, until it is refreshed. Paused types and upstreams are silent because somebody said so.
-- Bounds: 200 live sessions and 200 of the watched keys of a type are looked at; a type that is
--         silent is silent for all of them.
CREATE OR REPLACE FUNCTION livewell.rule_type_silent(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_silent text[];
BEGIN
    v_silent := ARRAY(
        WITH watched AS MATERIALIZED (
            SELECT DISTINCT s.data_type, s.key
            FROM (
                SELECT v.id FROM livewell.viewer_session v
                WHERE v.seen_at > p_now - interval '5 minutes'
                ORDER BY v.seen_at DESC LIMIT 200
            ) live
            CROSS JOIN LATERAL (
                SELECT o.data_type, o.key FROM livewell.subscription o
                WHERE o.session_id = live.id
                LIMIT 1000
            ) s
        )
        SELECT t.name
        FROM livewell.data_type t
        JOIN livewell.upstream u ON u.name = t.upstream
        WHERE t.paused_at IS NULL
            AND u.paused_at IS NULL
            -- Counted by the hour: an hour that has not begun 24 hours ago is recent enough without
            -- a closer look.
            AND NOT EXISTS (
                SELECT FROM livewell.refresh_count c
                WHERE c.hour > p_now - interval '24 hours'
                    AND c.data_type = t.name
                    AND c.outcome IN ('stored', 'corrected', 'unchanged', 'missing')
            )
            AND EXISTS (
                SELECT FROM (
                    SELECT w.key FROM watched w WHERE w.data_type = t.name ORDER BY w.key LIMIT 200
                ) w
                JOIN livewell.ledger l ON l.data_type = t.name AND l.key = w.key
                WHERE livewell.is_stale(t, l, p_now)
            )
            AND coalesce(
                (SELECT max(l.checked_at) FROM livewell.ledger l WHERE l.data_type = t.name),
                t.applied_at
            ) <= p_now - interval '24 hours'
    );
    RETURN QUERY
    SELECT l.subject,
        format(
            '%s: somebody watches it, and it has not been refreshed since %s', l.subject,
            coalesce(
                (
                    SELECT to_char(max(o.checked_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')
                    FROM livewell.ledger o
                    WHERE o.data_type = l.subject
                ),
                'it was applied'
            )
        )
    FROM livewell.lasting('type_silent', v_silent, interval '10 minutes', p_now) l;
END
$$;
COMMENT ON FUNCTION livewell.rule_type_silent IS
    'Watched types with a stale key and no refresh for 24 hours.';
REVOKE ALL ON FUNCTION livewell.rule_type_silent FROM PUBLIC;
