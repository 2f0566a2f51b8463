-- Store what many refreshes brought: value, ledger, bytes and the job's end commit together, or not
-- at all. The only writer of values.
--
-- Called by: the storer of a worker, with the results of a few milliseconds. On an error of class
--            22 or 23 it sends them one by one; 40001 and 40P01 it sends again (R17).
-- Steps:     own_results (lock), settle_refreshes (judge, move the ledger, say how the job ends),
--            change_questions (how it is asked next time), store_values, keep_answers,
--            count_refreshes, finish_jobs.
-- p_results: [{id, fence, call, queue, kind, credential, type, key, version, outcome, …}]. outcome:
--            value (rows, source_at, event_at, hash, etag, last_modified); same (not modified; hash
--            of what it was asked about); missing; failed (reason, error, blame, delay_seconds);
--            singly (a call for many keys was refused: each is to be asked for alone); unproven (it
--            may be the answer to another question of its connection: to be asked again on a
--            connection of its own); forgotten (what is stored is not what was asked about: to be
--            asked again for all of it). With used (units of the budget), wire, decoded (bytes) and
--            age_seconds (since the call was sent). All results of one call come together: its
--            first job says for all how the call went.
-- Answer:    stored (corrected, if the source time was the same), unchanged, older, missing,
--            type_changed, rejected with the reason, fenced; and the database's time.
-- Locks, in this order everywhere: job rows by id, ledger rows by type and key (NO KEY: who
-- subscribes does not wait for us), data rows, counters, then what finish_jobs takes. Read only
-- after that, in statements of their own. What a job is about is taken from the job, not from the
-- result.
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
    v_own       record;                 -- what is ours, as arrays: in the order of types and keys
    v_s         record;                 -- what becomes of each, as arrays in the same order
    v_types     text[];                 -- what is counted: ours, then what is not ours
    v_judged    text[];
    v_wire      bigint[];
    v_decoded   bigint[];
    v_strange   jsonb;                  -- what is not ours
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'values are stored on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    SELECT * INTO v_own FROM livewell.own_results(p_worker, p_results);
    v_now := v_own.at;
    SELECT * INTO v_s FROM livewell.settle_refreshes(
        v_own.ids, v_own.fences, v_own.types, v_own.keys, v_own.results, v_now);
    v_types := v_own.types;
    v_judged := v_s.judged;
    v_wire := v_s.wire;
    v_decoded := v_s.decoded;
    IF coalesce(cardinality(v_own.ids), 0) < jsonb_array_length(p_results) THEN
        -- What the calls of others' jobs used is booked all the same, once per fence.
        SELECT jsonb_agg(e - 'rows' || jsonb_build_object('outcome', 'released')),
               v_types || array_agg(e ->> 'type'), v_judged || array_agg('fenced'::text),
               v_wire || array_agg((e ->> 'wire')::bigint),
               v_decoded || array_agg((e ->> 'decoded')::bigint)
        INTO v_strange, v_types, v_judged, v_wire, v_decoded
        FROM jsonb_array_elements(p_results) AS e
        WHERE (e ->> 'fence')::bigint <> ALL (coalesce(v_own.fences, '{}'));
    END IF;
    IF NOT v_s.judged <@ '{stored,corrected,unchanged}' THEN
        PERFORM livewell.change_questions(v_own.ids, v_own.types, v_s.judged, v_s.errors, v_s.ends);
    END IF;
    IF v_s.judged && '{stored,corrected}' THEN
        PERFORM livewell.store_values(v_own.types, v_own.keys, v_s.versions, v_s.rows);
    END IF;
    PERFORM livewell.keep_answers(
        v_own.types, v_own.keys, v_s.judged, v_s.wire, v_s.decoded, v_now);
    PERFORM livewell.count_refreshes(v_types, v_judged, v_wire, v_decoded, v_s.errors, v_now);
    RETURN QUERY
    SELECT u.id, u.fence,
           CASE WHEN u.judged IN ('stored', 'corrected') THEN 'stored'
                WHEN u.judged IN ('unchanged', 'older', 'missing', 'type_changed') THEN u.judged
                ELSE 'rejected' END,
           CASE WHEN u.judged NOT IN ('stored', 'unchanged', 'older', 'missing', 'type_changed')
                THEN u.judged END,
           v_now
    FROM unnest(v_own.ids, v_own.fences, v_s.judged) AS u (id, fence, judged)
    UNION ALL
    SELECT (e ->> 'id')::bigint, (e ->> 'fence')::bigint, 'fenced', NULL::text, v_now
    FROM jsonb_array_elements(v_strange) AS e;

    PERFORM livewell.finish_jobs(
        p_worker, '{}', '{}', coalesce(v_s.ends, '[]') || coalesce(v_strange, '[]'));
END
$$;
COMMENT ON FUNCTION livewell.store_refreshes IS
    'Stores what refreshes brought, moves the ledger, books the bytes and ends the jobs, in one '
    'transaction; says what became of each.';
REVOKE ALL ON FUNCTION livewell.store_refreshes FROM PUBLIC;
