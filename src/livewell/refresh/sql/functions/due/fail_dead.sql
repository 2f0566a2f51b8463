-- Turn dead refresh jobs of these keys into failures of the keys: verdict failing, and not asked
-- again for 1 min · 2ⁿ, at most 6 h (R9).
--
-- Called by: queue_chosen and dispatch_scheduled, with the ledger rows locked, before they queue a
--            key again: a poison key cannot loop.
-- Index:     dead_job_refresh_idx, ledger_pkey.
-- Which ones are news: died after the last check and after retry_at. A store that counted the
-- failure itself has set retry_at later than the death, so nothing counts twice; new viewers do not
-- bypass it, and a redrive does, as it takes the letter out of the dead.
CREATE OR REPLACE FUNCTION livewell.fail_dead(p_types text[], p_keys text[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_failed integer;
BEGIN
    -- As a rule none is dead at all: one look instead of one for each key.
    IF NOT EXISTS (SELECT FROM livewell.dead_job j WHERE j.kind = 'livewell.refresh') THEN
        RETURN 0;
    END IF;
    UPDATE livewell.ledger l
    SET failures = l.failures + 1, failing_since = coalesce(l.failing_since, d.died_at),
        retry_at = d.died_at + least(60 * 2 ^ least(l.failures, 20), 21600) * interval '1 second',
        due_at = greatest(
            p_now, d.died_at + least(60 * 2 ^ least(l.failures, 20), 21600) * interval '1 second'),
        reason = coalesce(CASE WHEN l.failing_since IS NOT NULL THEN l.reason END, 'transient'),
        error = left(coalesce(d.error, d.reason), 300), tries = greatest(l.tries, 1),
        tried_at = greatest(l.tried_at, d.died_at),
        status_version = l.status_version + 1, status_at = p_now
    FROM unnest(p_types, p_keys) AS g (name, key)
    CROSS JOIN LATERAL (
        SELECT j.died_at, j.error, j.reason FROM livewell.dead_job j
        WHERE j.kind = 'livewell.refresh' AND j.unique_key = g.name || ':' || g.key
        ORDER BY j.died_at DESC LIMIT 1) d
    WHERE l.data_type = g.name AND l.key = g.key AND d.died_at > coalesce(l.checked_at, '-infinity')
      AND d.died_at >= coalesce(l.retry_at, '-infinity');
    GET DIAGNOSTICS v_failed = ROW_COUNT;
    RETURN v_failed;
END
$$;
COMMENT ON FUNCTION livewell.fail_dead IS
    'Counts dead refresh jobs as failures of their keys and backs the keys off; answers how many '
    'were news.';
REVOKE ALL ON FUNCTION livewell.fail_dead FROM PUBLIC;
