-- Schedules, their runs, and the pulse of what turns too often to have runs (S1–S5). Never edited after release; changes are a new numbered file.

CREATE TYPE livewell.run_state AS ENUM (
    'running',      -- its holder has the lease of the schedule, under the run's fence
    'succeeded',    -- the handler returned
    'failed',       -- the handler raised, took longer than its timeout, or was stopped with its process
    'crashed',      -- its lease ran out: the process died, stood still, or lost the database
    'skipped'       -- it never began; `reason` says why
);

CREATE TABLE livewell.schedule (
    name            text COLLATE "C" PRIMARY KEY,
    due_at          timestamptz,                            -- the next slot; NULL: not planned yet, or ended
    gap             interval    NOT NULL DEFAULT '0',       -- between that slot and its neighbours: twice that is late
    asked_at        timestamptz,                            -- somebody asked for a run beside the slots
    paused_at       timestamptz,
    ended_at        timestamptz,                            -- a one-off has had its run
    seen_at         timestamptz NOT NULL,                   -- when a process that has its handler was last here
    created_at      timestamptz NOT NULL,
    every           interval,
    at              timestamptz,
    timeout         interval    NOT NULL,
    kind            text        NOT NULL,
    cron            text,
    zone            text,
    missed          text        NOT NULL,
    internal        boolean     NOT NULL DEFAULT false,     -- work that Livewell does itself
    -- its lease is the singleton `schedule.<name>`, and that name has 63 characters
    CONSTRAINT schedule_name_check CHECK (name ~ '^[a-z][a-z0-9_.-]{0,53}$'),
    CONSTRAINT schedule_kind_check CHECK (CASE kind WHEN 'cron' THEN cron IS NOT NULL AND zone IS NOT NULL WHEN 'interval' THEN every IS NOT NULL WHEN 'once' THEN at IS NOT NULL ELSE false END),
    CONSTRAINT schedule_every_check CHECK (every BETWEEN interval '10 ms' AND interval '400 days'),
    CONSTRAINT schedule_timeout_check CHECK (timeout BETWEEN interval '10 ms' AND interval '1 day'),
    CONSTRAINT schedule_missed_check CHECK (missed IN ('skip', 'once', 'all')),
    CONSTRAINT schedule_texts_check CHECK (coalesce(octet_length(cron), 0) <= 100 AND coalesce(octet_length(zone), 0) <= 100)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.schedule IS 'Periodic work: when it is due, by which rule, and what happens to slots that were missed.';

CREATE TABLE livewell.run (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    due_at          timestamptz NOT NULL,                   -- the slot; of a skipped row the first one; of a run that was asked for, when it was
    last_due_at     timestamptz NOT NULL,                   -- of a skipped row the last one
    started_at      timestamptz,
    finished_at     timestamptz,                            -- NULL while it runs
    fence           bigint,
    rows_affected   bigint,
    slots           integer     NOT NULL DEFAULT 1,         -- a row stands for all slots that were skipped one after another for one reason
    asked           boolean     NOT NULL DEFAULT false,
    state           livewell.run_state NOT NULL,
    schedule        text COLLATE "C" NOT NULL,              -- no foreign key: the history outlives its schedule
    reason          text,
    holder          text        NOT NULL,
    error           text,
    -- each slot runs at most once
    CONSTRAINT run_slot_key UNIQUE (schedule, due_at),
    CONSTRAINT run_reason_check CHECK ((state = 'skipped') = (reason IS NOT NULL) AND coalesce(reason, 'missed') IN ('missed', 'still running', 'paused')),
    CONSTRAINT run_fence_check CHECK (state = 'skipped' OR fence IS NOT NULL AND started_at IS NOT NULL),
    CONSTRAINT run_ended_check CHECK ((state = 'running') = (finished_at IS NULL)),
    CONSTRAINT run_texts_check CHECK (octet_length(holder) <= 200 AND coalesce(octet_length(error), 0) <= 16000)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
COMMENT ON TABLE livewell.run IS 'What became of every slot: by whom, from when to when, how it ended. Kept 30 days.';
CREATE INDEX run_schedule_idx ON livewell.run (schedule, id);
CREATE INDEX run_running_idx ON livewell.run (schedule) WHERE state = 'running';
CREATE INDEX run_finished_idx ON livewell.run (finished_at);

CREATE TABLE livewell.pulse (
    name            text COLLATE "C" PRIMARY KEY,
    turns           bigint      NOT NULL,
    done            bigint      NOT NULL,
    first_at        timestamptz NOT NULL,
    last_at         timestamptz NOT NULL,
    every           interval    NOT NULL,                   -- how often it is written; more than twice that is late
    holder          text        NOT NULL,
    CONSTRAINT pulse_texts_check CHECK (octet_length(name) BETWEEN 1 AND 63 AND octet_length(holder) <= 200)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.pulse IS 'Loops that turn many times a second, one row each: how often, how much came of it, and when last.';

REVOKE ALL ON TYPE livewell.run_state FROM PUBLIC;
