-- Limits, groups and batches. Layout: docs/adr/0005-limited-queues.md. Never edited after release; changes are a new numbered file.

-- A queue with any of these is limited: it is claimed by claim_limited, one claim at a time, and never ahead of need.
ALTER TABLE livewell.queue
    -- running at once, in the whole fleet
    ADD COLUMN concurrency  integer CONSTRAINT queue_concurrency_check CHECK (concurrency BETWEEN 1 AND 100000),
    -- running at once for one group key
    ADD COLUMN group_limit  integer CONSTRAINT queue_group_limit_check CHECK (group_limit BETWEEN 1 AND 100000),
    ADD COLUMN limiter      text COLLATE "C";
CREATE INDEX queue_limiter_idx ON livewell.queue (limiter) WHERE limiter IS NOT NULL;

-- The live table once more, with what a claim changes side by side: an update logs all between the first and the last byte that differ (24 of 137 B less). It has live jobs only, so this is quick.
-- Nobody sees it under that name: it is dropped in this transaction.
-- squawk-ignore renaming-table
ALTER TABLE livewell.job RENAME TO job_0_1;
CREATE TABLE livewell.job (
    id                  bigint      NOT NULL,
    rank                bigint      NOT NULL,               -- ms since 1970 minus a minute per priority point: already contains the age
    run_at              timestamptz NOT NULL,
    created_at          timestamptz NOT NULL,
    fence               bigint      NOT NULL DEFAULT 0,
    worker              bigint,                             -- the incarnation that holds it
    started_at          timestamptz,                        -- when it was claimed
    deadline_at         timestamptz,                        -- set by the heartbeat after the handler started
    reserved_units      bigint,                             -- what it is expected to use, while it runs
    call_fence          bigint,                             -- the fence of the first job of its call
    state               livewell.job_state NOT NULL,
    attempt             smallint    NOT NULL DEFAULT 0,
    max_attempts        smallint    NOT NULL,
    lost                smallint    NOT NULL DEFAULT 0,     -- workers that died holding it: not attempts
    priority            smallint    NOT NULL DEFAULT 0,
    lane                smallint    NOT NULL DEFAULT 1,     -- 0: people wait; 1: background
    progress            smallint    NOT NULL DEFAULT 0,
    cancel_requested    boolean     NOT NULL DEFAULT false,
    held_by             "char",                             -- k: key, g: group; NULL unless held
    batch_id            bigint,
    units               bigint,                             -- what its call is expected to use, if whoever enqueued it knew
    queue               text COLLATE "C" NOT NULL,
    kind                text COLLATE "C" NOT NULL,
    credential          text COLLATE "C",                   -- under which it runs: '' where the queue has none, NULL unless it runs in a limited queue
    unique_key          text COLLATE "C",
    group_key           text COLLATE "C",
    call_key            text COLLATE "C",
    payload             jsonb       NOT NULL,
    progress_note       text,
    last_error          text,
    trace               text,
    -- One CHECK for what changes during a life: each is evaluated again at every claim (eight of them made a claim 1.7 times as dear). What is fixed at birth is checked by the functions
    -- that insert (refuse_job.sql): a trigger's condition is read and prepared anew in every statement, 95 of 730 µs of a single enqueue.
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
INSERT INTO livewell.job (
    id, rank, run_at, created_at, fence, worker, started_at, deadline_at, reserved_units, state, attempt, max_attempts, lost, priority, lane, progress, cancel_requested, held_by, batch_id,
    queue, kind, unique_key, group_key, call_key, payload, progress_note, last_error, trace)
SELECT id, rank, run_at, created_at, fence, worker, started_at, deadline_at, reserved_units, state, attempt, max_attempts, lost, priority, lane, progress, cancel_requested, held_by, batch_id,
       queue, kind, unique_key, group_key, call_key, payload, progress_note, last_error, trace
FROM livewell.job_0_1;
-- squawk-ignore ban-drop-table
DROP TABLE livewell.job_0_1;
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS livewell.refuse_birth();
ALTER TABLE livewell.job ADD CONSTRAINT job_pkey PRIMARY KEY (id);
CREATE INDEX job_ready_idx ON livewell.job (queue, lane, rank, id) WHERE state = 'ready' AND lost = 0;
CREATE INDEX job_suspect_idx ON livewell.job (queue, lane, rank, id) WHERE state = 'ready' AND lost > 0;
CREATE INDEX job_delayed_idx ON livewell.job (run_at) WHERE state = 'delayed';
CREATE INDEX job_worker_idx ON livewell.job (worker) WHERE state = 'running';
CREATE INDEX job_deadline_idx ON livewell.job (deadline_at) WHERE deadline_at IS NOT NULL;
CREATE INDEX job_cancel_idx ON livewell.job (worker) WHERE cancel_requested;
CREATE UNIQUE INDEX job_unique_key_idx ON livewell.job (queue, unique_key) WHERE unique_key IS NOT NULL AND held_by IS DISTINCT FROM 'k';
CREATE UNIQUE INDEX job_unique_held_idx ON livewell.job (queue, unique_key) WHERE unique_key IS NOT NULL AND held_by = 'k';
CREATE TRIGGER job_transition AFTER UPDATE OF state, worker, fence ON livewell.job
    FOR EACH ROW WHEN (NEW.state = 'running' AND OLD.state <> 'ready') EXECUTE FUNCTION livewell.refuse_transition();
ALTER TABLE livewell.dead_job ADD COLUMN units bigint;

-- What runs in a limited queue; other jobs are never in it.
CREATE INDEX job_limited_idx ON livewell.job (queue) WHERE credential IS NOT NULL;
-- A group's jobs by state and order: who is next, and how many run.
CREATE INDEX job_group_idx ON livewell.job (queue, group_key, state, lane, rank, id) WHERE group_key IS NOT NULL;
CREATE INDEX job_batch_idx ON livewell.job (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX dead_job_batch_idx ON livewell.dead_job (batch_id) WHERE batch_id IS NOT NULL;

-- Where the last look at held jobs ended; each look is a bounded page.
ALTER TABLE livewell.tick ADD COLUMN cursor text[] COLLATE "C";

CREATE TABLE livewell.batch (
    id              bigint      NOT NULL,
    created_at      timestamptz NOT NULL,
    sealed_at       timestamptz,                -- nothing is added any more
    ended_at        timestamptz,                -- the follow-up is enqueued, or there is none
    succeeded       bigint      NOT NULL DEFAULT 0,
    failed          bigint      NOT NULL DEFAULT 0,     -- dead letters
    cancelled       bigint      NOT NULL DEFAULT 0,
    remaining       bigint,                     -- known once it is sealed
    follow_id       bigint,                     -- the follow-up's job id, reserved beforehand
    follow_when     text COLLATE "C",           -- done: however its jobs ended; succeeded: only if none failed or was cancelled
    follow          jsonb,                      -- as enqueue_jobs takes it, without the id
    CONSTRAINT batch_pkey PRIMARY KEY (id),
    CONSTRAINT batch_follow_check CHECK ((follow IS NULL) = (follow_id IS NULL) AND (follow IS NULL) = (follow_when IS NULL) AND follow_when IN ('done', 'succeeded')),
    CONSTRAINT batch_sealed_check CHECK ((sealed_at IS NULL) = (remaining IS NULL) AND remaining >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.batch IS 'Jobs that belong together: open until sealed, counted as they end, with a follow-up job (Q11).';
CREATE INDEX batch_ended_idx ON livewell.batch (ended_at) WHERE ended_at IS NOT NULL;

-- What claim_limited answers, one row per job, or one that says what there is to wait for.
CREATE TYPE livewell.limited_job AS (
    answer          text,       -- claimed | wait (why, and seconds until it is worth asking again, if that is known) | buried
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
    trace           text,
    call            bigint,     -- jobs with the same number are one call: the fence of its first job
    call_key        text,
    credential      text,
    permit_seconds  float8,     -- the call must be made within this after the claim was sent; NULL: no rate
    wait_seconds    float8,
    reason          text
);
COMMENT ON TYPE livewell.limited_job IS 'One row of the answer to claim_limited.';
REVOKE ALL ON TYPE livewell.limited_job FROM PUBLIC;

-- Whatever way a job leaves the live table, what waited for it is told: by construction, not by each caller's care. On jobs that nothing waits for it costs 0.7 of 23 µs.
-- The body is in functions/job_ended.sql; a trigger needs it to exist.
CREATE FUNCTION livewell.job_ended() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN NULL;
END
$$;
CREATE TRIGGER job_ended AFTER DELETE ON livewell.job REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION livewell.job_ended();

-- These get parameters with defaults: calls as before still fit, and there must not be two that do. A new database does not have them yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.declare_queue(text, integer, float8, float8, integer)') IS NOT NULL THEN
        DROP FUNCTION livewell.declare_queue(text, integer, float8, float8, integer);
        DROP FUNCTION livewell.settle_jobs(bigint[], text[], text[], text[], float8[]);
    END IF;
END
$drop$;
