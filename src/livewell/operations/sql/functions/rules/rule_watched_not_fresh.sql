-- Rule watched_not_fresh (P1): of what people watch from an upstream, more than half is not fresh,
-- and was not at every look for 5 minutes.
--
-- Called by: evaluate_rule.
-- By viewers: a key that a hundred people watch counts a hundred times, so a dead key that few
-- watch among thousands raises nothing.
-- Not fresh: stale, failing, lagging, or no value yet. That the upstream knows no such key is an
-- answer, and unverifiable is as fresh as can be told.
-- By upstream: one that is silent is named, and a healthy one beside it is not. What is paused is
-- not fresh because somebody said so.
-- Bounded:   sample_watched.
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
    SELECT array_agg(s.upstream), array_agg(s.share) INTO v_upstreams, v_shares
    FROM (
        SELECT j.upstream,
            sum(j.viewers) FILTER (
                WHERE j.verdict NOT IN ('fresh', 'unverifiable')
                    AND NOT (j.absent AND j.verdict = 'missing')
            ) / sum(j.viewers) AS share
        FROM livewell.sample_watched(p_now) j
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
