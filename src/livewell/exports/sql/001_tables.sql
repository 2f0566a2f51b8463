-- Exports: documents of users made into files in the background (E1–E16).
-- Never edited after release; changes are a new numbered file.
--
--      request_exports ──▶ waiting ──begin_export──▶ running ──finish_export──▶ finished ──▶ deleted
--                             ▲  │                     │  │                        └──expires_at──▶ (expired, a verdict)
--                             │  │◀──fails, tried again┘  ├──fails for good──▶ failed ──its job is redriven──▶ running
--                             │  └──cancel_export─────────┴──▶ cancelled
--
-- Every change of a state locks the user's row in export_usage first, then exports, then files, then the job: quotas hold under races, and nobody deadlocks.

CREATE TABLE livewell.export_kind (
    name            text COLLATE "C" PRIMARY KEY,
    bytes_estimate  bigint      NOT NULL,               -- what a request reserves of the user's quota
    declared_at     timestamptz NOT NULL,
    content_type    text        NOT NULL,
    suffix          text COLLATE "C" NOT NULL,
    templates       text[]      NOT NULL,
    CONSTRAINT export_kind_name_check      CHECK (name ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    CONSTRAINT export_kind_suffix_check    CHECK (suffix ~ '^[a-z0-9]{1,16}$'),
    CONSTRAINT export_kind_type_check      CHECK (octet_length(content_type) BETWEEN 3 AND 100),
    CONSTRAINT export_kind_estimate_check  CHECK (bytes_estimate BETWEEN 1 AND 1000000000),
    CONSTRAINT export_kind_templates_check CHECK (cardinality(templates) <= 100)
);
COMMENT ON TABLE livewell.export_kind IS 'What can be exported: one row for each exporter that a program declares.';

CREATE TABLE livewell.export (
    id                  uuid        NOT NULL,
    job_id              bigint      NOT NULL,
    fence               bigint,                             -- of the attempt that began last
    seq                 bigint      NOT NULL DEFAULT 0,     -- of the last step
    reserved_bytes      bigint      NOT NULL DEFAULT 0,     -- counted in export_usage.reserved_bytes
    stored_bytes        bigint      NOT NULL DEFAULT 0,     -- counted in export_usage.stored_bytes; 0 once it is deleted or expired
    bytes               bigint,
    crc32               bigint,
    created_at          timestamptz NOT NULL,
    started_at          timestamptz,
    finished_at         timestamptz,                        -- when it ended, however
    expires_at          timestamptz,
    removed_at          timestamptz,                        -- when its file was removed
    over_at             timestamptz,                        -- from then on it is a tombstone, see prune_exports
    as_of               timestamptz,                        -- how old the data in it is
    pages               integer,
    downloads           integer     NOT NULL DEFAULT 0,
    attempt             smallint    NOT NULL DEFAULT 0,
    progress            smallint    NOT NULL DEFAULT 0,
    user_id             text COLLATE "C" NOT NULL,
    kind                text COLLATE "C" NOT NULL,
    document_id         text COLLATE "C" NOT NULL,
    document_version    text COLLATE "C" NOT NULL,
    state               text COLLATE "C" NOT NULL,
    reason              text COLLATE "C",                   -- of the last failure; one word of a closed list
    detail              text,                               -- of the last failure: which field, which character; our own words
    file_name           text        NOT NULL,
    template            text COLLATE "C" GENERATED ALWAYS AS (options ->> 'template') STORED,
    options             jsonb       NOT NULL,
    options_hash        bytea       NOT NULL,
    sha256              bytea,
    steps               jsonb       NOT NULL DEFAULT '[]',  -- the last 64: [seq, progress, state, instant, attempt]
    PRIMARY KEY (id),
    CONSTRAINT export_state_check CHECK (state IN (
        'waiting',      -- for a worker, or for its next attempt
        'running',      -- an attempt has begun
        'finished',     -- its file is there until expires_at
        'failed',       -- for good; a dead letter that is redriven revives it
        'cancelled',
        'deleted'       -- it was finished, and its user deleted it
    )),
    CONSTRAINT export_reserved_check CHECK (reserved_bytes >= 0 AND (reserved_bytes = 0 OR state IN ('waiting', 'running'))),
    CONSTRAINT export_stored_check   CHECK (stored_bytes >= 0 AND (stored_bytes = 0 OR state = 'finished')),
    CONSTRAINT export_progress_check CHECK (progress BETWEEN 0 AND 100 AND (progress = 100) = (state IN ('finished', 'deleted'))),
    CONSTRAINT export_ended_check    CHECK ((finished_at IS NULL) = (state IN ('waiting', 'running'))),
    CONSTRAINT export_text_check     CHECK (
        octet_length(user_id) BETWEEN 1 AND 200 AND octet_length(document_id) BETWEEN 1 AND 200
        AND octet_length(document_version) BETWEEN 1 AND 100 AND octet_length(file_name) BETWEEN 1 AND 255
        AND octet_length(options::text) <= 8192 AND octet_length(options_hash) = 32 AND coalesce(octet_length(reason), 1) BETWEEN 1 AND 40 AND coalesce(octet_length(detail), 0) <= 1200
    )
) WITH (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 500,
    autovacuum_analyze_scale_factor = 0.05
);
COMMENT ON TABLE livewell.export IS 'Exports of users: what was asked for, how far it is, what came of it. Outlives its document and its file.';

-- E1: the same document, version and options once at a time. It serves the look for unfinished exports of one user, too.
CREATE UNIQUE INDEX export_same_idx ON livewell.export (user_id, kind, document_id, document_version, options_hash) WHERE state IN ('waiting', 'running');
CREATE INDEX export_user_idx ON livewell.export (user_id, created_at, id);
CREATE INDEX export_newest_idx ON livewell.export (created_at, id);
CREATE INDEX export_open_idx ON livewell.export (created_at) WHERE state IN ('waiting', 'running');
CREATE INDEX export_expiry_idx ON livewell.export (expires_at) WHERE stored_bytes > 0;
CREATE INDEX export_ended_idx ON livewell.export (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX export_cancelled_idx ON livewell.export (finished_at) WHERE state = 'cancelled';
CREATE INDEX export_over_idx ON livewell.export (over_at) WHERE over_at IS NOT NULL;

CREATE TABLE livewell.export_file (
    export_id       uuid        NOT NULL,
    job_id          bigint      NOT NULL,
    fence           bigint      NOT NULL,               -- of the attempt that writes it
    bytes           bigint      NOT NULL,
    written_at      timestamptz NOT NULL,               -- when the row was, which is before the file
    given_up_at     timestamptz,                        -- since when nothing points to it
    claimed_at      timestamptz,                        -- when a cleaner took it up last
    user_id         text COLLATE "C" NOT NULL,
    path            text COLLATE "C" NOT NULL,
    state           text COLLATE "C" NOT NULL,
    PRIMARY KEY (path),
    CONSTRAINT export_file_state_check CHECK (state IN (
        'writing',      -- it may be there, in part or as a whole
        'stored',       -- it is there, and a finished export points to it
        'removing'      -- nothing points to it; a cleaner removes it, then this row
    )),
    CONSTRAINT export_file_path_check CHECK (octet_length(path) BETWEEN 1 AND 300)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX export_file_export_idx ON livewell.export_file (export_id);
CREATE INDEX export_file_writing_idx ON livewell.export_file (written_at) WHERE state = 'writing';
CREATE INDEX export_file_removing_idx ON livewell.export_file (claimed_at) WHERE state = 'removing';
COMMENT ON TABLE livewell.export_file IS 'Every file that may exist in the store has a row here before it is written, and until it is removed (E11).';

CREATE TABLE livewell.export_usage (
    stored_bytes    bigint      NOT NULL DEFAULT 0,
    reserved_bytes  bigint      NOT NULL DEFAULT 0,
    bytes_max       bigint,                             -- the limits at the last request, for those who watch over it
    day             date        NOT NULL,               -- in UTC
    day_count       integer     NOT NULL DEFAULT 0,
    day_max         integer,
    user_id         text COLLATE "C" PRIMARY KEY,
    CONSTRAINT export_usage_check CHECK (stored_bytes >= 0 AND reserved_bytes >= 0 AND day_count >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.export_usage IS 'What each user has stored and reserved, and asked for today. Locked first by whatever changes the state of an export.';

CREATE TABLE livewell.export_batch (
    id              uuid        NOT NULL,
    created_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    user_id         text COLLATE "C" NOT NULL,
    follow          jsonb,                              -- a job for enqueue_jobs, its id reserved, for when all have ended
    PRIMARY KEY (id)
);
CREATE INDEX export_batch_user_idx ON livewell.export_batch (user_id, created_at);
CREATE INDEX export_batch_ended_idx ON livewell.export_batch (ended_at) WHERE ended_at IS NOT NULL;
COMMENT ON TABLE livewell.export_batch IS 'Exports that were asked for together, at most ten (E3).';

CREATE TABLE livewell.export_member (
    batch_id        uuid        NOT NULL,
    export_id       uuid        NOT NULL,
    place           smallint    NOT NULL,
    user_id         text COLLATE "C" NOT NULL,
    PRIMARY KEY (batch_id, export_id)
);
CREATE INDEX export_member_export_idx ON livewell.export_member (export_id);
COMMENT ON TABLE livewell.export_member IS 'Which exports a batch has. An unfinished export that is asked for again belongs to both batches (E1).';

CREATE TABLE livewell.export_renderer (
    seen_at             timestamptz NOT NULL,
    started_at          timestamptz NOT NULL,
    rss_bytes           bigint      NOT NULL,           -- of the worker itself
    children_bytes      bigint      NOT NULL,           -- of all its children
    bytes_max           bigint      NOT NULL,
    renders             bigint      NOT NULL,           -- since it started
    children            integer     NOT NULL,
    spare_deaths        integer     NOT NULL,           -- of children that died without a document, within ten minutes
    store_since         timestamptz,                    -- since when the store does not answer
    name                text COLLATE "C" PRIMARY KEY,   -- host:pid of the worker
    store_reason        text,
    killed              jsonb       NOT NULL            -- children ended since it started, by reason
) WITH (fillfactor = 50);
COMMENT ON TABLE livewell.export_renderer IS 'What each worker that renders says of itself every few seconds.';
