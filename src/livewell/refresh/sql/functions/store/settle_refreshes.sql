-- Judge each result, move the ledger row of its key, and say how its job ends.
--
-- Called by: store_refreshes, with what own_results has locked: arrays in one order, which the
--            answer keeps. One statement for all: in two, each would read jobs and ledger again.
-- Index:     job_pkey, ledger_pkey, data_type_pkey. Nested loops only, as in own_results.
-- judged:    judge_refresh: an outcome (stored, corrected, unchanged, missing, forgotten, singly,
--            unproven), or a reason of refresh_reasons, which says what becomes of the job (fate),
--            of the ledger row (ledger, read by move_ledger) and how the call fared.
-- fared:     for the limiter: ok, data, ours, wall, outage; key or new where the upstream is to
--            blame. It failed for this key, and perhaps for it alone; of a key that never had data
--            not even that is known (R13). ends: for finish_jobs.
CREATE OR REPLACE FUNCTION livewell.settle_refreshes(
    p_ids bigint[], p_fences bigint[], p_types text[], p_keys text[], p_results jsonb[],
    p_now timestamptz)
RETURNS TABLE (
    versions bigint[], judged text[], errors text[], wire bigint[], decoded bigint[], rows jsonb[],
    ends jsonb)
LANGUAGE plpgsql
SET search_path = ''
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH types AS MATERIALIZED (
        -- Without what makes a type's row large: a row that is handed to a function is unpacked
        -- each time, and a definition is kilobytes (1.8 became 0.4 ms per result).
        SELECT d.name, jsonb_populate_record(d, '{"definition": {}, "columns": []}') AS slim
        FROM livewell.data_type d WHERE d.name = ANY (p_types)
    ), given AS MATERIALIZED (
        SELECT u.place, u.result, j.id, j.fence, (u.result ->> 'call')::bigint AS call,
               j.attempt >= j.max_attempts AS exhausted,
               (j.payload ->> 'version')::bigint AS pinned, u.name, u.key, d.slim AS data_type,
               l AS ledger
        FROM unnest(p_ids, p_fences, p_types, p_keys, p_results)
             WITH ORDINALITY AS u (id, fence, name, key, result, place)
        JOIN livewell.job j ON j.id = u.id AND j.fence = u.fence
        LEFT JOIN types d ON d.name = u.name
        LEFT JOIN livewell.ledger l ON l.data_type = u.name AND l.key = u.key
    ), judged AS MATERIALIZED (
        SELECT g.*, livewell.judge_refresh(g.data_type, g.ledger, g.pinned, g.result) AS judged
        FROM given g
    ), meant AS (
        SELECT j.*,
               CASE
                   WHEN j.judged IN ('stored', 'corrected', 'unchanged') THEN 'ok'
                   WHEN j.judged IN ('missing', 'forgotten') THEN 'data'
                   -- A batch that is to be asked for singly may not have been asked for at all.
                   WHEN j.judged IN ('singly', 'unproven') THEN 'ours'
                   ELSE coalesce(
                       livewell.refresh_reasons() -> j.judged ->> 'fared', j.result ->> 'blame',
                       'ok')
               END AS blame,
               CASE
                   WHEN j.judged IN ('stored', 'corrected', 'unchanged', 'missing') THEN 'succeeded'
                   WHEN j.judged IN ('singly', 'unproven', 'forgotten') THEN 'released'
                   ELSE coalesce(livewell.refresh_reasons() -> j.judged ->> 'fate', 'retry')
               END AS fate
        FROM judged j
    ), fated AS MATERIALIZED (
        SELECT m.*, CASE WHEN m.blame <> 'upstream' THEN m.blame
                         WHEN (m.ledger).fetched_at IS NULL THEN 'new' ELSE 'key' END AS fared
        FROM meant m
    ), moved AS (
        UPDATE livewell.ledger l
        SET version = m.version, status_version = m.status_version, fetched_at = m.fetched_at,
            checked_at = m.checked_at, changed_at = m.changed_at, source_at = m.source_at,
            event_at = m.event_at, status_at = m.status_at, due_at = m.due_at,
            retry_at = m.retry_at, demanded_at = m.demanded_at, failures = m.failures,
            failing_since = m.failing_since, missing = m.missing, content_hash = m.content_hash,
            etag = m.etag, last_modified = m.last_modified, reason = m.reason, error = m.error,
            tries = m.tries, tried_at = m.tried_at, older_since = m.older_since,
            older_source_at = m.older_source_at
        FROM fated f
        CROSS JOIN LATERAL livewell.move_ledger(
            f.data_type, f.ledger, f.result, f.judged, f.fate = 'retry' AND f.exhausted,
            p_now - least(greatest(coalesce((f.result ->> 'age_seconds')::float8, 0), 0), 3600)
                * interval '1 second', p_now) AS m
        WHERE l.data_type = f.name AND l.key = f.key
          AND f.judged NOT IN ('singly', 'unproven', 'forgotten')
          AND (f.data_type).name IS NOT NULL    -- a whole row IS NOT NULL only if every column is
    ), called AS (
        -- A call that brought one good value is a good call, unless it met the bandwidth wall (as
        -- queue/outcomes.py has it); its first job says so.
        SELECT f.*, first_value(f.fared) OVER w AS call_fared, first_value(f.judged) OVER w AS cause
        FROM fated f
        WINDOW w AS (PARTITION BY f.call
                     ORDER BY array_position('{wall,ok,outage,key,data,new,ours}', f.fared))
    )
    SELECT array_agg(c.pinned ORDER BY c.place), array_agg(c.judged ORDER BY c.place),
           array_agg(CASE
               WHEN c.judged = 'older' THEN format(
                   '%s: the source says %s, which is older than what is stored (%s)',
                   c.key, c.result ->> 'source_at', (c.ledger).source_at)
               ELSE c.result ->> 'error' END ORDER BY c.place),
           array_agg((c.result ->> 'wire')::bigint ORDER BY c.place),
           array_agg((c.result ->> 'decoded')::bigint ORDER BY c.place),
           array_agg(CASE WHEN c.judged IN ('stored', 'corrected') THEN c.result -> 'rows' END
                     ORDER BY c.place),
           jsonb_agg(jsonb_build_object(
               'id', c.id, 'fence', c.fence, 'outcome', c.fate,
               'error', CASE WHEN c.fate <> 'succeeded' THEN
                   left(c.judged || coalesce(': ' || (c.result ->> 'error'), ''), 400) END,
               -- However long the upstream asked for, no longer than its limiter believes.
               'delay_seconds', CASE
                   WHEN c.fate IN ('retry', 'released') AND c.result ->> 'delay_seconds' IS NOT NULL
                   THEN least((c.result ->> 'delay_seconds')::float8, (
                       SELECT m.quiet_seconds_max FROM livewell.limiter m
                       WHERE m.name = (c.data_type).upstream)) END,
               'queue', c.result -> 'queue', 'kind', c.result -> 'kind',
               'credential', c.result -> 'credential', 'used', c.result -> 'used', 'fared', c.fared,
               'ended', CASE WHEN c.call = c.fence THEN c.call_fared END,
               'cause', CASE WHEN c.call = c.fence THEN c.cause END))
    FROM called c;
END
$$;
COMMENT ON FUNCTION livewell.settle_refreshes IS
    'Judges results, moves the ledger rows of their keys and says how each job ends.';
REVOKE ALL ON FUNCTION livewell.settle_refreshes FROM PUBLIC;
