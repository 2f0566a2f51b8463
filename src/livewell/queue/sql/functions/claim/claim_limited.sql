-- Take jobs of one limited queue: at most p_calls calls, as many as its concurrency, its groups and
-- its limiter allow now. Blocked work is never claimed and never burns an attempt.
--
-- Called by: the limited part of the worker, inline worker. Never ahead of need: each call must
--            start at once, its permit is short-lived.
-- p_kinds, p_batches: how many jobs of a kind one call may carry; kinds that are not named carry
-- one.
-- p_credentials: those that the worker can use; NULL: whichever there are. What it could not call
--                it does not claim.
-- Half open, the probe is chosen: a key that is not failing goes before any that is (see
-- limited_candidates), and those that are failing not before failing_until.
-- Index:     job_ready_idx, job_suspect_idx, job_limited_idx, job_group_idx.
-- Answer:    the jobs (those with the same `call` are one call and one permit); or one row that
--            says why there are none, and when to ask again.
-- Lock first, then read, in separate statements (DESIGN 3.5): the queue's row, then its limiter's;
-- what runs is counted by statements that begin after that.
-- A permit is counted from the grant, not from before we waited for those locks: twenty workers
-- that ask at once wait for each other longer than a short permit lasts. The worker counts from
-- when it sent the claim, so the time spent waiting in here is added; all of it lies between the
-- sending and the grant.
-- Worker row first: see claim_jobs.
-- Where nothing can share a call, no more jobs are looked at than may be called. A call key that is
-- the job's own unique key is shared with nobody; once a call is going that others might join, a
-- second look goes deeper (5,000 jobs looked at for each claim of 50 calls took 29 ms instead of
-- 4).
CREATE OR REPLACE FUNCTION livewell.claim_limited(
    p_worker bigint,
    p_queue text,
    p_calls integer,
    p_empty boolean DEFAULT false,
    p_kinds text[] DEFAULT '{}',
    p_batches integer[] DEFAULT '{}',
    p_credentials text[] DEFAULT NULL
)
RETURNS SETOF livewell.limited_job
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_queue     livewell.queue;
    v_limiter   livewell.limiter;
    v_begun     timestamptz := livewell.now();          -- a stopwatch for the locks
    v_waited    float8;                 -- seconds, for the locks
    v_now       timestamptz;
    v_room      integer := least(p_calls, 1000);
    v_jobs      integer := 5000;        -- jobs, of however many calls; a block of fences has 16383
    -- calls for lane 0, and for both lanes together when lane 1 asks
    v_rooms     integer[];
    v_reserved  jsonb;
    v_running   text[];                 -- queues that share the limiter
    v_c         record;
    v_credential text;                  -- the credential with the most room
    v_background integer;               -- and what lane 1 may use of it
    v_probe     boolean := false;       -- and it is half open
    v_failing   timestamptz;            -- keys that are failing may be its probe from then on
    v_most      integer := 0;
    v_units     bigint[];               -- what the budget leaves, for lane 0 and for lane 1
    v_unit      bigint;                 -- what this job is expected to use
    v_wait      float8;
    v_reason    text;
    v_per_key   integer;
    v_batch_max integer := greatest(1, (SELECT max(b) FROM unnest(p_batches) AS b));
    v_seen      bigint[];
    v_taken     bigint[] := '{}';
    -- for each taken job the place of its call's first job in v_taken
    v_calls     bigint[] := '{}';
    v_keys      text[] := '{}';         -- calls so far, by kind and key, and what they carry
    v_reserve   bigint[] := '{}';       -- for each taken job what it is expected to use
    v_first     integer[] := '{}';
    v_load      integer[] := '{}';
    v_j         record;
    v_place     integer;
    v_shared    boolean;                -- it fits into a call that is already going
    v_open      boolean := false;       -- a call is going that others may join
    v_asked     integer;                -- how many jobs were to be looked at
    v_used      integer := 0;           -- calls so far
    v_full      bigint[];
    v_fence     bigint;
    v_estimates jsonb;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'jobs are claimed on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN NEXT livewell.limited_answer('buried');
        RETURN;
    END IF;
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    SELECT * INTO v_queue FROM livewell.queue q WHERE q.name = p_queue FOR NO KEY UPDATE;
    IF NOT FOUND OR v_queue.paused_at IS NOT NULL THEN
        RETURN NEXT livewell.limited_answer('wait', 'paused');
        RETURN;
    END IF;
    -- Two questions, one for each index: asked as one, no index fits, and the whole table is read
    -- (4 ms of a claim beside 200,000 held jobs).
    IF NOT EXISTS (
        SELECT FROM livewell.job j WHERE j.queue = p_queue AND j.state = 'ready' AND j.lost = 0
    )
        AND NOT EXISTS (
            SELECT FROM livewell.job j WHERE j.queue = p_queue AND j.state = 'ready' AND j.lost > 0
        )
    THEN
        RETURN NEXT livewell.limited_answer('wait', 'nothing');
        RETURN;
    END IF;
    IF v_queue.limiter IS NOT NULL THEN
        SELECT * INTO v_limiter FROM livewell.limiter l
        WHERE l.name = v_queue.limiter
        FOR NO KEY UPDATE;
    END IF;
    v_now := livewell.now();
    v_waited := greatest(extract(epoch FROM v_now - v_begun), 0);

    IF v_queue.concurrency IS NOT NULL THEN
        v_jobs := v_queue.concurrency - (
            SELECT count(*) FROM livewell.job j WHERE j.queue = p_queue AND j.credential IS NOT NULL
        );
        v_room := least(v_room, v_jobs);
        v_reason := CASE WHEN v_room <= 0 THEN 'queue' END;
    END IF;
    IF v_limiter.name IS NOT NULL AND v_room > 0 THEN
        v_running := ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = v_limiter.name);
        IF v_limiter.concurrency IS NOT NULL THEN
            -- Calls, not jobs: a call of fifty jobs is one.
            v_room := least(
                v_room,
                v_limiter.concurrency - (
                    SELECT count(DISTINCT (j.worker, coalesce(j.call_fence, j.fence)))
                    FROM livewell.job j
                    WHERE j.queue = ANY (v_running) AND j.credential IS NOT NULL
                )
            );
            v_reason := CASE WHEN v_room <= 0 THEN 'concurrency' END;
        END IF;
        IF v_room > 0 THEN
            SELECT coalesce(jsonb_object_agg(r.credential, r.units), '{}') INTO v_reserved
            FROM (
                SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
                WHERE j.queue = ANY (v_running) AND j.credential IS NOT NULL
                GROUP BY j.credential
            ) r;
            SELECT coalesce(jsonb_object_agg(e.kind, ceil(e.units)), '{}') INTO v_estimates
            FROM livewell.limiter_estimate e
            WHERE e.limiter = v_limiter.name;
            FOR v_c IN
                SELECT *
                FROM livewell.limiter_room(
                    v_limiter, v_now, v_reserved,
                    CASE v_limiter.budget_unit
                        WHEN 'calls' THEN 1
                        ELSE least(
                            v_limiter.estimate_units,
                            (SELECT min(x.value::float8) FROM jsonb_each_text(v_estimates) AS x)
                        )
                    END,
                    ARRAY(
                        SELECT c.name FROM livewell.limiter_credential c
                        WHERE c.limiter = v_limiter.name
                            AND c.probe_fence IS NOT NULL
                            AND EXISTS (
                                SELECT FROM livewell.job j
                                WHERE j.queue = ANY (v_running)
                                    AND j.credential IS NOT NULL
                                    AND j.fence = c.probe_fence
                            )
                    )
                ) AS r
                WHERE p_credentials IS NULL OR r.credential = ANY (p_credentials)
            LOOP
                IF v_c.calls > 0
                    AND (
                        v_credential IS NULL
                        OR (v_c.calls, v_c.background_calls) > (v_most, v_background)
                    )
                THEN
                    v_credential := v_c.credential;
                    v_most := v_c.calls;
                    v_background := v_c.background_calls;
                    v_probe := v_c.probe;
                    v_units := ARRAY[v_c.units, v_c.background_units];
                END IF;
                IF v_c.reason IS NOT NULL AND (v_reason IS NULL OR v_c.wait_seconds < v_wait) THEN
                    v_wait := v_c.wait_seconds;
                    v_reason := v_c.reason;
                END IF;
            END LOOP;
            v_room := least(v_room, v_most);
        END IF;
    END IF;
    IF v_room <= 0 THEN
        RETURN NEXT livewell.limited_answer('wait', v_reason, v_wait);
        RETURN;
    END IF;
    IF v_probe THEN
        SELECT c.failing_until INTO v_failing FROM livewell.limiter_credential c
        WHERE c.limiter = v_limiter.name AND c.name = v_credential;
    END IF;
    v_rooms := ARRAY[v_room, least(v_room, v_background)];
    v_per_key := least(v_queue.group_limit, v_limiter.per_key);

    -- Whoever beyond their group's limit we meet on the way becomes held, and is not met again; so
    -- a few rounds find what may run.
    FOR v_round IN 1 .. 5 LOOP
        v_full := '{}';
        v_asked := least(
            (v_room - v_used) * (CASE WHEN v_open THEN v_batch_max ELSE 1 END) + 50, 5000
        );
        v_seen := livewell.limited_candidates(
            p_queue, p_empty AND v_round = 1 AND cardinality(v_taken) = 0, v_asked, v_taken,
            CASE WHEN v_probe THEN v_limiter.name END, coalesce(v_failing <= v_now, true)
        );
        EXIT WHEN cardinality(v_seen) = 0;
        FOR v_j IN
            SELECT j.id, j.lane, j.kind, j.call_key, j.unique_key, j.group_key, j.lost,
                coalesce(b.batch, 1) AS batch,
                coalesce(
                    j.units, (v_estimates ->> j.kind)::float8::bigint, v_limiter.estimate_units
                ) AS units
            FROM livewell.job j
            LEFT JOIN unnest(p_kinds, p_batches) AS b (kind, batch) ON b.kind = j.kind
            WHERE j.id = ANY (v_seen)
            ORDER BY j.lane, j.rank, j.id
        LOOP
            EXIT WHEN v_used >= v_rooms[1] AND NOT v_open OR cardinality(v_taken) >= v_jobs;
            IF v_per_key IS NOT NULL
                AND v_j.group_key IS NOT NULL
                AND NOT livewell.group_has_room(
                    p_queue, v_queue.group_limit, v_running, v_limiter.per_key, v_j.group_key,
                    v_taken
                )
            THEN
                v_full := v_full || v_j.id;
                CONTINUE;
            END IF;
            -- Does it fit into a call that is already going?
            v_place := CASE
                WHEN v_j.batch > 1 THEN array_position(
                    v_keys, v_j.kind || E'\x01' || coalesce(v_j.call_key, '')
                ) END;
            v_shared := v_place IS NOT NULL AND v_load[v_place] < v_j.batch;
            v_unit := CASE
                WHEN v_limiter.budget_unit = 'calls' THEN (NOT v_shared)::integer
                ELSE v_j.units END;
            IF v_unit > v_units[v_j.lane + 1] THEN
                v_reason := 'budget';
                CONTINUE;
            END IF;
            IF v_shared THEN
                v_load[v_place] := v_load[v_place] + 1;
                v_taken := v_taken || v_j.id;
                v_calls := v_calls || v_first[v_place]::bigint;
            ELSE
                CONTINUE WHEN v_used >= v_rooms[v_j.lane + 1];
                v_used := v_used + 1;
                v_taken := v_taken || v_j.id;
                v_calls := v_calls || cardinality(v_taken)::bigint;
                IF v_j.batch > 1
                    AND (v_j.call_key IS NULL OR v_j.call_key IS DISTINCT FROM v_j.unique_key)
                THEN
                    v_open := true;
                    IF v_place IS NULL THEN
                        v_keys := v_keys || (v_j.kind || E'\x01' || coalesce(v_j.call_key, ''));
                        v_place := cardinality(v_keys);
                    END IF;
                    v_first[v_place] := cardinality(v_taken);
                    v_load[v_place] := 1;
                END IF;
            END IF;
            v_reserve := v_reserve || v_unit;
            v_units := ARRAY[v_units[1] - v_unit, v_units[2] - v_unit];
            EXIT WHEN v_j.lost > 0;     -- it runs alone
        END LOOP;
        -- A suspect that may not run now (its lane's share is used up) must not keep the others
        -- waiting.
        CONTINUE WHEN p_empty
            AND v_round = 1
            AND cardinality(v_taken) = 0
            AND cardinality(v_full) = 0;
        EXIT WHEN cardinality(v_full) = 0
            AND NOT (v_open AND v_round = 1 AND cardinality(v_seen) >= v_asked);
        UPDATE livewell.job j SET state = 'held', held_by = 'g' WHERE j.id = ANY (v_full);
        EXIT WHEN v_used >= v_rooms[1] AND NOT v_open OR cardinality(v_taken) >= v_jobs;
    END LOOP;

    IF cardinality(v_taken) = 0 AND v_failing > v_now THEN
        RETURN NEXT livewell.limited_answer(
            'wait', 'breaker', extract(epoch FROM v_failing - v_now)::float8
        );
        RETURN;
    END IF;
    IF cardinality(v_taken) = 0 THEN
        RETURN NEXT livewell.limited_answer(
            'wait',
            CASE WHEN cardinality(v_seen) = 0 THEN 'group' ELSE coalesce(v_reason, 'rate') END,
            v_wait
        );
        RETURN;
    END IF;
    v_fence := nextval('livewell.fence_seq');
    IF v_credential IS NOT NULL THEN
        PERFORM livewell.grant_calls(
            v_limiter, v_credential, v_now, v_used, v_fence + 1,
            ARRAY(SELECT DISTINCT v_fence + c FROM unnest(v_calls) AS c)
        );
    END IF;
    RETURN QUERY
    UPDATE livewell.job j
    SET state = 'running', worker = p_worker, fence = v_fence + t.place,
        call_fence = v_fence + t.call, attempt = j.attempt + 1, started_at = v_now,
        deadline_at = NULL, credential = coalesce(v_credential, ''),
        reserved_units = CASE WHEN v_limiter.budget_units IS NOT NULL THEN t.units END
    FROM unnest(v_taken, v_calls, v_reserve) WITH ORDINALITY AS t (id, call, units, place)
    WHERE j.id = t.id
    RETURNING 'claimed', j.id, j.fence, j.attempt, j.max_attempts, j.lost, j.lane, j.rank, j.queue,
        j.kind, j.payload::text, j.unique_key, j.group_key, j.trace, j.call_fence, j.call_key,
        j.credential,
        CASE WHEN v_limiter.rate_calls IS NOT NULL THEN v_limiter.permit_seconds + v_waited END,
        NULL::float8, NULL::text;
END
$$;
COMMENT ON FUNCTION livewell.claim_limited IS
    'Claims jobs of a limited queue within its limits, each under its own fence and with its '
    'credential.';
REVOKE ALL ON FUNCTION livewell.claim_limited FROM PUBLIC;
