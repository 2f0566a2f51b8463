-- Store what many refreshes brought: value, ledger, bytes and the job's end commit together, or not at all. The only writer of values.
--
-- Called by: the storer of a worker, with the results of a few milliseconds. On an error of class 22 or 23 it sends them one by one; 40001 and 40P01 it sends again (R17).
-- p_results:   [{id, fence, call, queue, kind, credential, type, key, version, outcome, …}]. outcome: value (rows, source_at, event_at, hash, etag, last_modified), same (not modified; hash of what it was asked
--              about), missing, failed (reason, error, blame, delay_seconds), singly (a call for many keys was refused: each is to be asked for alone). With used (units of the budget), wire, decoded (bytes) and
--              age_seconds (since the call was sent). All results of one call come together: its first job says for all how the call went.
-- Answer:      stored (corrected, if the source time was the same), unchanged, older, missing, type_changed, rejected with the reason, fenced; and the database's time.
-- Index:       primary keys.
-- Locks, in this order everywhere: job rows by id, ledger rows by type and key (NO KEY: who subscribes does not wait for us), data rows, counters, then what finish_jobs takes. Read only after that, in statements of their
-- own. What a job is about is taken from the job, not from the result.
-- Why the version is read again after writing: applying a type waits for our lock on its table, or we wait for its. If it came first, what we have read is old: 40001, and the next try ends as type_changed.
CREATE OR REPLACE FUNCTION livewell.store_refreshes(p_worker bigint, p_results jsonb)
RETURNS TABLE (job_id bigint, job_fence bigint, answer text, reason text, at timestamptz)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_r         record;
    v_judged    text;
    v_ended     text;                   -- how the call went, see book_calls
    v_fate      text;                   -- and what finish_jobs makes of the job
    v_exhausted boolean;
    v_checked   timestamptz;
    v_l         livewell.ledger;
    v_owned     bigint[] := '{}';       -- fences
    v_calls     jsonb := '{}';          -- by call: the gravest of how it went
    v_ends      jsonb[] := '{}';        -- for finish_jobs
    v_types     text[] := '{}';         -- of what is written,
    v_keys      text[] := '{}';
    v_rows      jsonb[] := '{}';        -- an array for each key
    v_versions  jsonb := '{}';          -- read with which version of the type
    v_counts    jsonb[] := '{}';
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'values are stored on the primary only; this server is a replica' USING ERRCODE = 'LW001';
    END IF;
    PERFORM FROM livewell.job j
    WHERE j.id = ANY (ARRAY(SELECT (e ->> 'id')::bigint FROM jsonb_array_elements(p_results) AS e)) AND j.worker = p_worker ORDER BY j.id FOR UPDATE;
    -- Somebody may have removed the row since the job was made.
    INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at)
    SELECT d.name, j.payload ->> 'key', d.upstream, livewell.now(), livewell.now()
    FROM jsonb_array_elements(p_results) AS e
    JOIN livewell.job j ON j.id = (e ->> 'id')::bigint AND j.fence = (e ->> 'fence')::bigint AND j.worker = p_worker
    JOIN livewell.data_type d ON d.name = j.payload ->> 'type'
    WHERE NOT EXISTS (SELECT FROM livewell.ledger l WHERE l.data_type = d.name AND l.key = j.payload ->> 'key')
    ORDER BY d.name, j.payload ->> 'key'
    ON CONFLICT DO NOTHING;
    PERFORM FROM livewell.ledger l
    JOIN (SELECT j.payload ->> 'type' AS name, j.payload ->> 'key' AS key
          FROM jsonb_array_elements(p_results) AS e
          JOIN livewell.job j ON j.id = (e ->> 'id')::bigint AND j.fence = (e ->> 'fence')::bigint AND j.worker = p_worker) k ON l.data_type = k.name AND l.key = k.key
    ORDER BY l.data_type, l.key FOR NO KEY UPDATE OF l;
    v_now := livewell.now();

    FOR v_r IN
        SELECT e AS result, j.id, j.fence, j.attempt, j.max_attempts, j.payload, j.unique_key, l AS ledger, d AS data_type,
               count(*) OVER (PARTITION BY j.payload ->> 'type', j.payload ->> 'key') AS alike
        FROM jsonb_array_elements(p_results) AS e
        JOIN livewell.job j ON j.id = (e ->> 'id')::bigint AND j.fence = (e ->> 'fence')::bigint AND j.worker = p_worker
        LEFT JOIN livewell.data_type d ON d.name = j.payload ->> 'type'
        LEFT JOIN livewell.ledger l ON l.data_type = j.payload ->> 'type' AND l.key = j.payload ->> 'key'
        ORDER BY j.payload ->> 'type', j.payload ->> 'key'
    LOOP
        IF v_r.alike > 1 THEN
            RAISE EXCEPTION 'two results for % in one call', v_r.unique_key USING ERRCODE = '22023';       -- one by one, each is compared with the other
        END IF;
        v_owned := v_owned || v_r.fence;
        v_judged := livewell.judge_refresh(v_r.data_type, v_r.ledger, (v_r.payload ->> 'version')::bigint, v_r.result);
        v_exhausted := v_r.attempt >= v_r.max_attempts;
        v_checked := v_now - least(greatest(coalesce((v_r.result ->> 'age_seconds')::float8, 0), 0), 3600) * interval '1 second';
        v_ended := CASE
            WHEN v_judged IN ('stored', 'corrected', 'unchanged') THEN 'ok'
            WHEN v_judged IN ('older', 'missing', 'singly', 'forgotten', 'entitlement_key', 'entitlement_type', 'legacy_path') THEN 'data'
            WHEN v_judged IN ('empty', 'no_source_time') THEN 'upstream'
            WHEN v_judged = 'bandwidth_wall' THEN 'wall'
            WHEN v_judged = 'rate_wall' THEN 'ours'
            ELSE coalesce(v_r.result ->> 'blame', 'ok') END;
        v_fate := CASE
            WHEN v_judged IN ('stored', 'corrected', 'unchanged', 'older', 'missing', 'type_changed') THEN 'succeeded'
            -- Not the job's fault: back, and what stands in the way (a limit, an open breaker) keeps it from being claimed.
            WHEN v_judged IN ('singly', 'forgotten', 'rate_wall', 'bandwidth_wall') THEN 'released'
            -- Asking again would be refused again. No dead letter: there is nothing to mend in the job.
            WHEN v_judged IN ('entitlement_key', 'entitlement_type', 'legacy_path') THEN 'cancelled'
            ELSE 'retry' END;

        IF (v_r.data_type).name IS NOT NULL THEN          -- not the row: that IS NOT NULL only if every column is
            v_l := livewell.move_ledger(v_r.data_type, v_r.ledger, v_r.result, v_judged, v_fate = 'retry' AND v_exhausted, v_checked, v_now);
            UPDATE livewell.ledger l
            SET version = v_l.version, status_version = v_l.status_version, fetched_at = v_l.fetched_at, checked_at = v_l.checked_at, changed_at = v_l.changed_at, source_at = v_l.source_at,
                event_at = v_l.event_at, status_at = v_l.status_at, due_at = v_l.due_at, retry_at = v_l.retry_at, demanded_at = v_l.demanded_at, failures = v_l.failures,
                failing_since = v_l.failing_since, missing = v_l.missing, content_hash = v_l.content_hash, etag = v_l.etag, last_modified = v_l.last_modified, reason = v_l.reason, error = v_l.error
            WHERE l.data_type = v_l.data_type AND l.key = v_l.key AND v_judged NOT IN ('singly', 'forgotten');
        END IF;
        IF v_judged IN ('stored', 'corrected') THEN
            v_types := v_types || v_l.data_type;
            v_versions := v_versions || jsonb_build_object(v_l.data_type, v_r.payload -> 'version');
            v_keys := v_keys || v_l.key;
            v_rows := v_rows || (SELECT jsonb_agg(w || jsonb_build_object('key', v_l.key)) FROM jsonb_array_elements(v_r.result -> 'rows') AS w);
        ELSIF v_judged = 'singly' THEN
            UPDATE livewell.job j SET call_key = j.unique_key WHERE j.id = v_r.id;
        ELSIF v_judged IN ('entitlement_type', 'legacy_path') THEN
            UPDATE livewell.data_type d SET parked_reason = left(v_judged || ': ' || coalesce(v_r.result ->> 'error', ''), 300)
            WHERE d.name = v_l.data_type AND d.parked_reason IS NULL;
        END IF;

        -- Of what the jobs of one call say, the gravest is what happened (as results.speak_as_one has it).
        IF coalesce(array_position('{wall,upstream,ok,data,ours}', v_calls ->> (v_r.result ->> 'call')), 9) > array_position('{wall,upstream,ok,data,ours}', v_ended) THEN
            v_calls := v_calls || jsonb_build_object(v_r.result ->> 'call', v_ended);
        END IF;
        v_ends := v_ends || (jsonb_build_object('id', v_r.id, 'fence', v_r.fence, 'outcome', v_fate, 'error', CASE WHEN v_fate <> 'succeeded' THEN left(v_judged || coalesce(': ' || (v_r.result ->> 'error'), ''), 400) END,
                                               'delay_seconds', CASE WHEN v_fate IN ('retry', 'released') THEN v_r.result -> 'delay_seconds' END)
                             || jsonb_build_object('queue', v_r.result -> 'queue', 'kind', v_r.result -> 'kind', 'credential', v_r.result -> 'credential', 'used', v_r.result -> 'used', 'call', v_r.result -> 'call'));
        v_counts := v_counts || jsonb_build_object('type', v_r.payload ->> 'type', 'outcome', v_judged, 'wire', v_r.result -> 'wire', 'decoded', v_r.result -> 'decoded', 'error', v_r.result -> 'error');

        job_id := v_r.id;
        job_fence := v_r.fence;
        answer := CASE WHEN v_judged IN ('stored', 'corrected') THEN 'stored' WHEN v_judged IN ('unchanged', 'older', 'missing', 'type_changed') THEN v_judged ELSE 'rejected' END;
        reason := CASE WHEN v_judged = 'corrected' OR answer = 'rejected' THEN v_judged END;
        at := v_now;
        RETURN NEXT;
    END LOOP;

    FOR v_r IN SELECT e AS result FROM jsonb_array_elements(p_results) AS e WHERE (e ->> 'fence')::bigint <> ALL (v_owned) LOOP
        -- What its call used is booked all the same, once per fence.
        v_ends := v_ends || (v_r.result - 'rows' || jsonb_build_object('outcome', 'released'));
        v_counts := v_counts || jsonb_build_object('type', v_r.result ->> 'type', 'outcome', 'fenced', 'wire', v_r.result -> 'wire', 'decoded', v_r.result -> 'decoded');
        job_id := (v_r.result ->> 'id')::bigint;
        job_fence := (v_r.result ->> 'fence')::bigint;
        answer := 'fenced';
        reason := NULL;
        at := v_now;
        RETURN NEXT;
    END LOOP;

    FOR v_r IN
        SELECT d AS data_type, array_agg(w.key) AS keys, jsonb_agg(x.value) AS rows
        FROM unnest(v_types, v_keys, v_rows) AS w (name, key, rows) JOIN livewell.data_type d ON d.name = w.name CROSS JOIN LATERAL jsonb_array_elements(w.rows) AS x
        GROUP BY d.name, d ORDER BY d.name
    LOOP
        PERFORM livewell.write_values(v_r.data_type, v_r.keys, v_r.rows);
    END LOOP;
    IF EXISTS (SELECT FROM jsonb_each_text(v_versions) AS v LEFT JOIN livewell.data_type d ON d.name = v.key WHERE d.version IS DISTINCT FROM v.value::bigint) THEN
        RAISE EXCEPTION 'a type was changed while its values were written' USING ERRCODE = '40001';
    END IF;
    PERFORM livewell.count_refreshes(to_jsonb(v_counts), v_now);

    PERFORM livewell.finish_jobs(p_worker, '{}', '{}', (
        SELECT jsonb_agg(CASE WHEN o.value -> 'call' = o.value -> 'fence' THEN o.value || jsonb_build_object('ended', v_calls -> (o.value ->> 'call')) ELSE o.value END)
        FROM unnest(v_ends) AS o (value)));
END
$$;
COMMENT ON FUNCTION livewell.store_refreshes IS 'Stores what refreshes brought, moves the ledger, books the bytes and ends the jobs, in one transaction; says what became of each.';
REVOKE ALL ON FUNCTION livewell.store_refreshes FROM PUBLIC;
