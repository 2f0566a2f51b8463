-- Store what many refreshes brought: value, ledger, bytes and the job's end commit together, or not at all. The only writer of values.
--
-- Called by: the storer of a worker, with the results of a few milliseconds. On an error of class 22 or 23 it sends them one by one; 40001 and 40P01 it sends again (R17).
-- p_results:   [{id, fence, call, queue, kind, credential, type, key, version, outcome, …}]. outcome: value (rows, source_at, event_at, hash, etag, last_modified), same (not modified; hash of what it was asked
--              about), missing, failed (reason, error, blame, delay_seconds), singly (a call for many keys was refused: each is to be asked for alone),
--              unproven (it may be the answer to another question of its connection: to be asked again on a connection of its own),
--              forgotten (what is stored is not what was asked about: to be asked again for all of it). With used (units of the budget), wire, decoded (bytes) and
--              age_seconds (since the call was sent). All results of one call come together: its first job says for all how the call went.
-- Answer:      stored (corrected, if the source time was the same), unchanged, older, missing, type_changed, rejected with the reason, fenced; and the database's time.
-- Index:       primary keys; nested loops only, for the statistics of a small or new table would otherwise have it read whole.
-- Locks, in this order everywhere: job rows by id, ledger rows by type and key (NO KEY: who subscribes does not wait for us), data rows, counters, then what finish_jobs takes. Read only after that, in statements of their
-- own. What a job is about is taken from the job, not from the result.
-- Why the version is read again after writing: applying a type waits for our lock on its table, or we wait for its. If it came first, what we have read is old: 40001, and the next try ends as type_changed.
CREATE OR REPLACE FUNCTION livewell.store_refreshes(p_worker bigint, p_results jsonb)
RETURNS TABLE (job_id bigint, job_fence bigint, answer text, reason text, at timestamptz)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_type      livewell.data_type;
    v_ids       bigint[] := '{}';       -- of what is ours: in the order of types and keys
    v_fences    bigint[] := '{}';
    v_types     text[] := '{}';
    v_keys      text[] := '{}';
    v_given     jsonb[];                -- the results themselves
    v_versions  bigint[];
    v_judged    text[] := '{}';
    v_errors    text[];
    v_wire      bigint[];
    v_decoded   bigint[];
    v_rows      jsonb[];
    v_ends      jsonb;                  -- for finish_jobs
    v_strange   jsonb;                  -- what is not ours
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'values are stored on the primary only; this server is a replica' USING ERRCODE = 'LW001';
    END IF;
    v_ids := ARRAY(SELECT (e ->> 'id')::bigint FROM jsonb_array_elements(p_results) AS e);
    PERFORM FROM livewell.job j WHERE j.id = ANY (v_ids) AND j.worker = p_worker ORDER BY j.id FOR UPDATE;
    -- Ours, by id and fence; in the order in which the ledger is locked.
    SELECT array_agg(o.id), array_agg(o.fence), array_agg(o.name), array_agg(o.key), array_agg(o.result) INTO v_ids, v_fences, v_types, v_keys, v_given FROM (
        SELECT j.id, j.fence, j.payload ->> 'type' AS name, j.payload ->> 'key' AS key, e AS result
        FROM jsonb_array_elements(p_results) AS e
        -- OFFSET 0: by primary key. Statistics from when nothing ran say that worker = p_worker finds next to nothing, and then the whole table is read for it (223 ms for 99 results).
        CROSS JOIN LATERAL (SELECT b.id, b.fence, b.worker, b.payload FROM livewell.job b WHERE b.id = (e ->> 'id')::bigint OFFSET 0) j
        WHERE j.fence = (e ->> 'fence')::bigint AND j.worker = p_worker
        ORDER BY j.payload ->> 'type' COLLATE "C", j.payload ->> 'key' COLLATE "C") o;
    IF EXISTS (SELECT FROM unnest(v_types, v_keys) AS u (name, key) GROUP BY u.name, u.key HAVING count(*) > 1) THEN
        RAISE EXCEPTION 'two results for one key in one call' USING ERRCODE = '22023';        -- one by one, each is compared with the other
    END IF;
    PERFORM FROM unnest(v_types, v_keys) AS u (name, key) JOIN livewell.ledger l ON l.data_type = u.name AND l.key = u.key ORDER BY l.data_type, l.key FOR NO KEY UPDATE OF l;
    v_now := livewell.now();
    IF (SELECT count(*) FROM unnest(v_types, v_keys) AS u (name, key) JOIN livewell.ledger l ON l.data_type = u.name AND l.key = u.key) < coalesce(cardinality(v_keys), 0) THEN
        -- Somebody removed the row since the job was made; new rows are ours alone.
        INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at)
        SELECT d.name, u.key, d.upstream, v_now, v_now FROM unnest(v_types, v_keys) AS u (name, key) JOIN livewell.data_type d ON d.name = u.name ORDER BY d.name, u.key
        ON CONFLICT (data_type, key) DO UPDATE SET status_at = livewell.ledger.status_at;
    END IF;

    WITH types AS MATERIALIZED (
        -- Without what makes a type's row large: a row that is handed to a function is unpacked each time, and a definition is kilobytes (1.8 became 0.4 ms per result).
        SELECT d.name, jsonb_populate_record(d, '{"definition": {}, "columns": []}') AS slim FROM livewell.data_type d WHERE d.name = ANY (v_types)
    ), given AS MATERIALIZED (
        SELECT u.place, u.result, j.id, j.fence, (u.result ->> 'call')::bigint AS call, j.attempt >= j.max_attempts AS exhausted, (j.payload ->> 'version')::bigint AS pinned, u.name, u.key, d.slim AS data_type, l AS ledger
        FROM unnest(v_ids, v_fences, v_types, v_keys, v_given) WITH ORDINALITY AS u (id, fence, name, key, result, place)
        JOIN livewell.job j ON j.id = u.id AND j.fence = u.fence
        LEFT JOIN types d ON d.name = u.name
        LEFT JOIN livewell.ledger l ON l.data_type = u.name AND l.key = u.key
    ), judged AS MATERIALIZED (
        SELECT g.*, livewell.judge_refresh(g.data_type, g.ledger, g.pinned, g.result) AS judged FROM given g
    ), fated AS MATERIALIZED (
        SELECT j.*,
               CASE
                   WHEN j.judged IN ('stored', 'corrected', 'unchanged') THEN 'ok'
                   WHEN j.judged IN ('older', 'missing', 'forgotten', 'entitlement_key', 'entitlement_type', 'legacy_path') THEN 'data'
                   WHEN j.judged = 'bandwidth_wall' THEN 'wall'
                   -- A batch that is to be asked for singly may not have been asked for at all.
                   WHEN j.judged IN ('rate_wall', 'singly', 'unproven') THEN 'ours'
                   -- It failed for this key, and perhaps for it alone; of a key that never had data not even that is known (R13).
                   WHEN j.judged IN ('empty', 'no_source_time') OR j.result ->> 'blame' = 'upstream' THEN CASE WHEN (j.ledger).fetched_at IS NULL THEN 'new' ELSE 'key' END
                   ELSE coalesce(j.result ->> 'blame', 'ok')
               END AS ended,
               CASE
                   WHEN j.judged IN ('stored', 'corrected', 'unchanged', 'older', 'missing', 'type_changed') THEN 'succeeded'
                   -- Not the job's fault: back, and what stands in the way (a limit, an open breaker) keeps it from being claimed.
                   WHEN j.judged IN ('singly', 'unproven', 'forgotten', 'rate_wall', 'bandwidth_wall') THEN 'released'
                   -- Asking again would be refused again. No dead letter: there is nothing to mend in the job.
                   WHEN j.judged IN ('entitlement_key', 'entitlement_type', 'legacy_path') THEN 'cancelled'
                   ELSE 'retry'
               END AS fate
        FROM judged j
    ), moved AS (
        UPDATE livewell.ledger l
        SET version = m.version, status_version = m.status_version, fetched_at = m.fetched_at, checked_at = m.checked_at, changed_at = m.changed_at, source_at = m.source_at,
            event_at = m.event_at, status_at = m.status_at, due_at = m.due_at, retry_at = m.retry_at, demanded_at = m.demanded_at, failures = m.failures,
            failing_since = m.failing_since, missing = m.missing, content_hash = m.content_hash, etag = m.etag, last_modified = m.last_modified, reason = m.reason, error = m.error,
            tries = m.tries, tried_at = m.tried_at, older_since = m.older_since, older_source_at = m.older_source_at
        FROM fated f
        CROSS JOIN LATERAL livewell.move_ledger(f.data_type, f.ledger, f.result, f.judged, f.fate = 'retry' AND f.exhausted,
            v_now - least(greatest(coalesce((f.result ->> 'age_seconds')::float8, 0), 0), 3600) * interval '1 second', v_now) AS m
        WHERE l.data_type = f.name AND l.key = f.key AND f.judged NOT IN ('singly', 'unproven', 'forgotten') AND (f.data_type).name IS NOT NULL         -- not the row: that IS NOT NULL only if every column is
    ), called AS (
        -- A call that brought one good value is a good call, unless it met the bandwidth wall (as results.speak_as_one has it); its first job says so.
        SELECT f.*, first_value(f.ended) OVER w AS call_ended, first_value(f.judged) OVER w AS cause
        FROM fated f WINDOW w AS (PARTITION BY f.call ORDER BY array_position('{wall,ok,outage,key,data,new,ours}', f.ended))
    )
    SELECT array_agg(c.id ORDER BY c.place), array_agg(c.fence ORDER BY c.place), array_agg(c.name ORDER BY c.place), array_agg(c.key ORDER BY c.place), array_agg(c.pinned ORDER BY c.place),
           array_agg(c.judged ORDER BY c.place), array_agg(CASE WHEN c.judged = 'older' THEN format('%s: the source says %s, which is older than what is stored (%s)', c.key, c.result ->> 'source_at', (c.ledger).source_at) ELSE c.result ->> 'error' END ORDER BY c.place),
           array_agg((c.result ->> 'wire')::bigint ORDER BY c.place),
           array_agg((c.result ->> 'decoded')::bigint ORDER BY c.place), array_agg(CASE WHEN c.judged IN ('stored', 'corrected') THEN c.result -> 'rows' END ORDER BY c.place),
           jsonb_agg(jsonb_build_object(
               'id', c.id, 'fence', c.fence, 'outcome', c.fate, 'error', CASE WHEN c.fate <> 'succeeded' THEN left(c.judged || coalesce(': ' || (c.result ->> 'error'), ''), 400) END,
               -- However long the upstream asked for, no longer than its limiter believes.
               'delay_seconds', CASE WHEN c.fate IN ('retry', 'released') AND c.result ->> 'delay_seconds' IS NOT NULL THEN least(
                   (c.result ->> 'delay_seconds')::float8, (SELECT m.quiet_seconds_max FROM livewell.limiter m WHERE m.name = (c.data_type).upstream)) END, 'queue', c.result -> 'queue', 'kind', c.result -> 'kind',
               'credential', c.result -> 'credential', 'used', c.result -> 'used', 'fared', c.ended,
               'ended', CASE WHEN c.call = c.fence THEN c.call_ended END, 'cause', CASE WHEN c.call = c.fence THEN c.cause END))
    INTO v_ids, v_fences, v_types, v_keys, v_versions, v_judged, v_errors, v_wire, v_decoded, v_rows, v_ends FROM called c;

    -- From here on as everywhere: the functions below have plans of their own (finish_jobs with nested loops only: 0.67 ms per result instead of 0.1).
    PERFORM set_config('enable_hashjoin', 'on', true), set_config('enable_mergejoin', 'on', true);

    IF coalesce(cardinality(v_ids), 0) < jsonb_array_length(p_results) THEN
        -- What the calls of others' jobs used is booked all the same, once per fence.
        SELECT jsonb_agg(e - 'rows' || jsonb_build_object('outcome', 'released')), v_types || array_agg(e ->> 'type'), v_judged || array_agg('fenced'::text), v_wire || array_agg((e ->> 'wire')::bigint),
               v_decoded || array_agg((e ->> 'decoded')::bigint)
        INTO v_strange, v_types, v_judged, v_wire, v_decoded
        FROM jsonb_array_elements(p_results) AS e WHERE (e ->> 'fence')::bigint <> ALL (coalesce(v_fences, '{}'));
    END IF;
    -- How they are asked next time. What failed, or was refused together with others, is asked alone: the next failure is its own (R14).
    IF NOT v_judged <@ '{stored,corrected,unchanged}' THEN
        UPDATE livewell.job j SET call_key = j.unique_key
        WHERE j.id = ANY (ARRAY(SELECT (e ->> 'id')::bigint FROM jsonb_array_elements(v_ends) AS e WHERE e ->> 'outcome' = 'retry') || ARRAY(SELECT u.id FROM unnest(v_ids, v_judged) AS u (id, judged) WHERE u.judged = 'singly'))
          AND j.call_key <> j.unique_key;
    END IF;
    IF v_judged && '{unproven,forgotten}' THEN
        UPDATE livewell.job j SET payload = CASE u.judged WHEN 'unproven' THEN j.payload || '{"fresh": true}' ELSE j.payload - '{etag,last_modified,hash,since}'::text[] END
        FROM unnest(v_ids, v_judged) AS u (id, judged) WHERE j.id = u.id AND u.judged IN ('unproven', 'forgotten');
    END IF;
    IF v_judged && '{entitlement_type,legacy_path}' THEN
        UPDATE livewell.data_type d SET parked_reason = left(u.judged || ': ' || coalesce(u.error, ''), 300)
        FROM (SELECT DISTINCT ON (u.name) u.name, u.judged, u.error FROM unnest(v_types, v_judged, v_errors) AS u (name, judged, error) WHERE u.judged IN ('entitlement_type', 'legacy_path') ORDER BY u.name) u
        WHERE d.name = u.name AND d.parked_reason IS NULL;
    END IF;
    IF v_judged && '{stored,corrected}' THEN
        FOR v_type IN SELECT d.* FROM livewell.data_type d WHERE d.name = ANY (v_types) ORDER BY d.name LOOP
            PERFORM livewell.write_values(v_type, w.keys, w.rows)
            FROM (SELECT array_agg(DISTINCT u.key) AS keys, jsonb_agg(r || jsonb_build_object('key', u.key)) AS rows
                  FROM unnest(v_types, v_keys, v_rows) AS u (name, key, rows) CROSS JOIN LATERAL jsonb_array_elements(u.rows) AS r WHERE u.name = v_type.name AND u.rows IS NOT NULL) w
            WHERE w.keys IS NOT NULL;
        END LOOP;
        IF EXISTS (SELECT FROM unnest(v_types, v_versions, v_rows) AS u (name, version, rows) LEFT JOIN livewell.data_type d ON d.name = u.name WHERE u.rows IS NOT NULL AND d.version IS DISTINCT FROM u.version) THEN
            RAISE EXCEPTION 'a type was changed while its values were written' USING ERRCODE = '40001';
        END IF;
    END IF;
    PERFORM livewell.count_refreshes(v_types, v_judged, v_wire, v_decoded, v_errors, v_now);
    RETURN QUERY
    SELECT u.id, u.fence, CASE WHEN u.judged IN ('stored', 'corrected') THEN 'stored' WHEN u.judged IN ('unchanged', 'older', 'missing', 'type_changed') THEN u.judged ELSE 'rejected' END,
           CASE WHEN u.judged NOT IN ('stored', 'unchanged', 'older', 'missing', 'type_changed') THEN u.judged END, v_now
    FROM unnest(v_ids, v_fences, v_judged) AS u (id, fence, judged) WHERE u.id IS NOT NULL
    UNION ALL
    SELECT (e ->> 'id')::bigint, (e ->> 'fence')::bigint, 'fenced', NULL::text, v_now FROM jsonb_array_elements(v_strange) AS e;

    PERFORM livewell.finish_jobs(p_worker, '{}', '{}', coalesce(v_ends, '[]') || coalesce(v_strange, '[]'));
END
$$;
COMMENT ON FUNCTION livewell.store_refreshes IS 'Stores what refreshes brought, moves the ledger, books the bytes and ends the jobs, in one transaction; says what became of each.';
REVOKE ALL ON FUNCTION livewell.store_refreshes FROM PUBLIC;
