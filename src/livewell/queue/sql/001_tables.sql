-- The queue: one small live table, insert-only history by day, dead letters, and one lease row per worker.
-- Layout and figures: docs/adr/0001-queue-storage.md. Never edited after release; changes are a new numbered file.

CREATE TYPE livewell.job_state AS ENUM (
    'delayed',      -- waits for run_at
    'held',         -- waits for another job with its key or group
    'ready',        -- may be claimed
    'running'       -- belongs to one worker incarnation, under one fence
);
COMMENT ON TYPE livewell.job_state IS 'States of a live job; finished jobs are in job_history, failed ones in dead_job.';

CREATE TYPE livewell.job_outcome AS ENUM (
    'succeeded',
    'cancelled'
);
COMMENT ON TYPE livewell.job_outcome IS 'How a finished job ended; a job that failed for good is a dead letter instead.';

CREATE TABLE livewell.queue (
    name                    text COLLATE "C" PRIMARY KEY,
    attempts                smallint    NOT NULL DEFAULT 5,
    backoff_base_seconds    float8      NOT NULL DEFAULT 5,
    backoff_cap_seconds     float8      NOT NULL DEFAULT 300,
    lost_max                smallint    NOT NULL DEFAULT 5,
    paused_at               timestamptz,
    created_at              timestamptz NOT NULL,
    CONSTRAINT queue_name_check     CHECK (name ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    CONSTRAINT queue_attempts_check CHECK (attempts BETWEEN 1 AND 100),
    CONSTRAINT queue_backoff_check  CHECK (backoff_base_seconds >= 0 AND backoff_cap_seconds BETWEEN backoff_base_seconds AND 604800),
    CONSTRAINT queue_lost_check     CHECK (lost_max BETWEEN 1 AND 100)
);
COMMENT ON TABLE livewell.queue IS 'Queue policy: attempts, back-off between them, how many lost workers a job may cost, pause.';

-- Client libraries reserve blocks of 64 ids (nextval is the first of its block), so every enqueue has a caller-chosen key (DESIGN 3.6).
CREATE SEQUENCE livewell.job_id_seq AS bigint INCREMENT BY 64 START WITH 64;
COMMENT ON SEQUENCE livewell.job_id_seq IS 'Blocks of 64 job ids: nextval n owns n … n + 63.';

-- Blocks of 16384, one per claim: nextval n owns n + 1 … n + 16383. At a thousand claims a second they last 17,000 years.
-- CACHE 1: reconcile_jobs compares fences across sessions, so blocks must be handed out in order.
CREATE SEQUENCE livewell.fence_seq AS bigint INCREMENT BY 16384 START WITH 16384 CACHE 1;
COMMENT ON SEQUENCE livewell.fence_seq IS 'Blocks of fences, one number per claim of one job; whoever holds an older one can change nothing.';

CREATE SEQUENCE livewell.worker_id_seq AS bigint;
COMMENT ON SEQUENCE livewell.worker_id_seq IS 'Worker incarnations.';

-- Fixed width first; fillfactor 50 leaves room for the claim's new row version on the same page (283 against 489 B of WAL per job).
CREATE TABLE livewell.job (
    id                  bigint      NOT NULL,
    fence               bigint      NOT NULL DEFAULT 0,
    rank                bigint      NOT NULL,               -- ms since 1970 minus a minute per priority point: already contains the age
    worker              bigint,                             -- the incarnation that holds it
    batch_id            bigint,
    reserved_units      bigint,
    run_at              timestamptz NOT NULL,
    created_at          timestamptz NOT NULL,
    started_at          timestamptz,                        -- when it was claimed
    deadline_at         timestamptz,                        -- set by the heartbeat after the handler started
    state               livewell.job_state NOT NULL,
    attempt             smallint    NOT NULL DEFAULT 0,
    max_attempts        smallint    NOT NULL,
    lost                smallint    NOT NULL DEFAULT 0,     -- workers that died holding it: not attempts
    priority            smallint    NOT NULL DEFAULT 0,
    lane                smallint    NOT NULL DEFAULT 1,     -- 0: people wait; 1: background
    progress            smallint    NOT NULL DEFAULT 0,
    cancel_requested    boolean     NOT NULL DEFAULT false,
    held_by             "char",                             -- k: key, g: group; NULL unless held
    queue               text COLLATE "C" NOT NULL,
    kind                text COLLATE "C" NOT NULL,
    unique_key          text COLLATE "C",
    group_key           text COLLATE "C",
    call_key            text COLLATE "C",
    payload             jsonb       NOT NULL,
    progress_note       text,
    last_error          text,
    trace               text,
    CONSTRAINT job_pkey PRIMARY KEY (id),
    -- One CHECK for what changes during a life: each is evaluated again at every claim (eight of them made a claim 1.7 times as dear).
    -- What is fixed at birth is checked at birth, by the trigger job_birth.
    CONSTRAINT job_state_check CHECK ((state = 'running') = (worker IS NOT NULL) AND (state = 'held') = (held_by IS NOT NULL) AND attempt BETWEEN 0 AND max_attempts)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
COMMENT ON TABLE livewell.job IS 'Live jobs only. A finished job leaves this table in the transaction that finishes it.';

-- Claims read only these. Neither can serve a look-up by id: the planner cannot mistake them for the primary key.
CREATE INDEX job_ready_idx ON livewell.job (queue, lane, rank, id) WHERE state = 'ready' AND lost = 0;
CREATE INDEX job_suspect_idx ON livewell.job (queue, lane, rank, id) WHERE state = 'ready' AND lost > 0;
CREATE INDEX job_delayed_idx ON livewell.job (run_at) WHERE state = 'delayed';
CREATE INDEX job_worker_idx ON livewell.job (worker) WHERE state = 'running';
CREATE INDEX job_deadline_idx ON livewell.job (deadline_at) WHERE deadline_at IS NOT NULL;
CREATE INDEX job_cancel_idx ON livewell.job (worker) WHERE cancel_requested;
CREATE UNIQUE INDEX job_unique_key_idx ON livewell.job (queue, unique_key) WHERE unique_key IS NOT NULL AND held_by IS DISTINCT FROM 'k';
CREATE UNIQUE INDEX job_unique_held_idx ON livewell.job (queue, unique_key) WHERE unique_key IS NOT NULL AND held_by = 'k';

CREATE TABLE livewell.job_history (
    id              bigint      NOT NULL,
    fence           bigint      NOT NULL,
    worker          bigint,
    created_at      timestamptz NOT NULL,
    started_at      timestamptz,
    finished_at     timestamptz NOT NULL,
    attempt         smallint    NOT NULL,
    outcome         livewell.job_outcome NOT NULL,
    queue           text COLLATE "C" NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    note            text
) PARTITION BY RANGE (finished_at);
COMMENT ON TABLE livewell.job_history IS 'Finished jobs, insert-only, one partition per UTC day; a day leaves by DROP, never by DELETE (R20).';
CREATE INDEX job_history_id_idx ON livewell.job_history (id);

CREATE TABLE livewell.dead_job (
    id              bigint      NOT NULL,
    batch_id        bigint,
    created_at      timestamptz NOT NULL,
    died_at         timestamptz NOT NULL,
    attempt         smallint    NOT NULL,
    max_attempts    smallint    NOT NULL,
    lost            smallint    NOT NULL,
    priority        smallint    NOT NULL,
    lane            smallint    NOT NULL,
    queue           text COLLATE "C" NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    unique_key      text COLLATE "C",
    group_key       text COLLATE "C",
    call_key        text COLLATE "C",
    reason          text COLLATE "C" NOT NULL,
    payload         jsonb       NOT NULL,
    error           text,
    trace           text,
    CONSTRAINT dead_job_pkey PRIMARY KEY (id),
    CONSTRAINT dead_job_reason_check CHECK (reason IN ('attempts', 'refused', 'payload', 'lost'))
);
COMMENT ON TABLE livewell.dead_job IS 'Dead letters: kept 30 days, can be inspected, mended and redriven (Q7).';
CREATE INDEX dead_job_queue_idx ON livewell.dead_job (queue, id);
CREATE INDEX dead_job_died_idx ON livewell.dead_job (died_at);

-- The lease: one row per worker incarnation. Jobs are leased by belonging to a worker whose row exists.
CREATE TABLE livewell.worker (
    id              bigint      NOT NULL,
    started_at      timestamptz NOT NULL,
    renewed_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    steady_since    timestamptz NOT NULL,       -- renewing without a gap since then; only a steady worker may bury others
    lease           interval    NOT NULL,
    slots           integer     NOT NULL,
    queues          text[]      NOT NULL,
    kinds           text[]      NOT NULL,
    name            text        NOT NULL,
    version         text        NOT NULL,
    CONSTRAINT worker_pkey PRIMARY KEY (id),
    CONSTRAINT worker_lease_check CHECK (lease BETWEEN interval '100 ms' AND interval '1 hour')
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.worker IS 'Leases: a worker renews its row every few seconds; a row that is gone means its jobs belong to nobody.';

CREATE TABLE livewell.stat (
    minute          timestamptz NOT NULL,
    queue           text COLLATE "C" NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    outcome         text COLLATE "C" NOT NULL,
    n               bigint      NOT NULL,
    ms              bigint      NOT NULL,
    CONSTRAINT stat_pkey PRIMARY KEY (minute, queue, kind, outcome)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.stat IS 'Outcomes per minute, added by workers every few seconds; dashboards read this, never the hot tables.';

CREATE TABLE livewell.tick (
    name            text COLLATE "C" PRIMARY KEY,
    due_at          timestamptz NOT NULL,
    last_at         timestamptz,
    last_worker     bigint,
    n               bigint      NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
COMMENT ON TABLE livewell.tick IS 'Internal periodic work, one row each: whoever finds it due does it; nobody waits, nobody leads.';

-- Q1: a job becomes running only from ready, and never changes hands while running. Only the WHEN is evaluated per row; the function runs only to refuse.
-- AFTER, because a BEFORE UPDATE trigger locks every row once more.
CREATE FUNCTION livewell.refuse_transition() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RAISE EXCEPTION 'job %: % cannot become %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'LW004';
END
$$;
COMMENT ON FUNCTION livewell.refuse_transition IS 'Refuses a state change that the job state machine does not have.';
REVOKE ALL ON FUNCTION livewell.refuse_transition FROM PUBLIC;
CREATE TRIGGER job_transition AFTER UPDATE OF state, worker, fence ON livewell.job
    FOR EACH ROW WHEN (NEW.state = 'running' AND OLD.state <> 'ready') EXECUTE FUNCTION livewell.refuse_transition();

CREATE FUNCTION livewell.refuse_birth() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF octet_length(NEW.payload::text) > 262144 THEN
        RAISE EXCEPTION 'the payload has % bytes; 262144 are allowed', octet_length(NEW.payload::text) USING ERRCODE = 'LW005';
    END IF;
    RAISE EXCEPTION 'a job is born delayed, held or ready (not %), in lane 0 or 1 (not %), with a priority from -100 to 100 (not %), 1 to 100 attempts (not %), a kind of 1 to 200 bytes and keys of 1 to 512 bytes',
        NEW.state, NEW.lane, NEW.priority, NEW.max_attempts USING ERRCODE = 'LW003';
END
$$;
COMMENT ON FUNCTION livewell.refuse_birth IS 'Refuses a new job that is outside the bounds, and says which they are.';
REVOKE ALL ON FUNCTION livewell.refuse_birth FROM PUBLIC;
-- Text is at most six times the binary form, so small payloads are never turned into text just to be measured.
CREATE TRIGGER job_birth AFTER INSERT ON livewell.job
    FOR EACH ROW WHEN (
        NEW.state = 'running' OR NEW.lane NOT IN (0, 1) OR NEW.priority NOT BETWEEN -100 AND 100 OR NEW.max_attempts NOT BETWEEN 1 AND 100
        OR octet_length(NEW.kind) NOT BETWEEN 1 AND 200 OR coalesce(octet_length(NEW.unique_key), 1) NOT BETWEEN 1 AND 512
        OR coalesce(octet_length(NEW.group_key), 1) NOT BETWEEN 1 AND 512 OR coalesce(octet_length(NEW.call_key), 1) NOT BETWEEN 1 AND 512
        OR pg_column_size(NEW.payload) > 40000 AND octet_length(NEW.payload::text) > 262144
    ) EXECUTE FUNCTION livewell.refuse_birth();

-- What a claim (and the finish fused with it) answers, one row per job.
CREATE TYPE livewell.claimed_job AS (
    answer          text,       -- claimed | fenced (a finish that was not ours) | buried (we have no lease any more) | slow (the look for jobs took rank µs)
    id              bigint,
    fence           bigint,
    attempt         smallint,
    max_attempts    smallint,
    lost            smallint,
    lane            smallint,
    rank            bigint,
    queue           text,
    kind            text,
    payload         text,
    unique_key      text,
    group_key       text,
    trace           text
);
COMMENT ON TYPE livewell.claimed_job IS 'One row of the answer to claim_jobs and exchange_jobs.';

REVOKE ALL ON TYPE livewell.job_state, livewell.job_outcome, livewell.claimed_job FROM PUBLIC;
