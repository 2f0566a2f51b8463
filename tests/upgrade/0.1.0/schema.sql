-- Livewell 0.1.0: the whole schema, for an empty database. Run as a superuser, as one transaction: psql -1 -f FILE DATABASE

-- ── roles ──
-- Create our roles where they are missing; they belong to the whole cluster, so another database may have made them.
--
-- The five below livewell_owner are groups of rights without login. Give one a login and a password, or grant it to a login of yours; in that case set the two
-- timeouts on that login too, as Postgres reads the settings of the role that logs in and of no other.
-- What is already so is not touched: a DBA's own timeouts stay, and two databases migrated at once do not collide on the shared catalogs.
DO $roles$
DECLARE
    v_role record;
    v_name text;
    v_value text;
BEGIN
    FOR v_role IN
        SELECT *
        FROM (VALUES
            ('livewell_owner', '10min', '1min'),
            ('livewell_api', '10s', '10s'),
            ('livewell_operate', '30s', '10s'),
            ('livewell_hub', '10s', '10s'),
            ('livewell_worker', '30s', '1min'),
            ('livewell_readonly', '1min', '1min')
        ) AS wanted (name, statement_timeout, idle_in_transaction_session_timeout)
    LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = v_role.name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION', v_role.name);
            EXCEPTION
                WHEN duplicate_object OR unique_violation THEN
                    NULL;       -- another database made it meanwhile
            END;
        END IF;
        FOR v_name, v_value IN SELECT w.key, w.value FROM jsonb_each_text(to_jsonb(v_role) - 'name') AS w LOOP
            IF NOT EXISTS (
                SELECT
                FROM pg_catalog.pg_db_role_setting s
                JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
                CROSS JOIN unnest(s.setconfig) AS setting
                WHERE r.rolname = v_role.name AND s.setdatabase = 0 AND setting LIKE v_name || '=%'
            ) THEN
                EXECUTE format('ALTER ROLE %I SET %I = %L', v_role.name, v_name, v_value);
            END IF;
        END LOOP;
    END LOOP;
    IF EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = 'livewell_owner' AND (r.rolsuper OR r.rolbypassrls)) THEN
        RAISE EXCEPTION 'livewell_owner is a superuser or bypasses row security'
            USING HINT = 'ALTER ROLE livewell_owner NOSUPERUSER NOBYPASSRLS';
    END IF;
    -- Who is not a superuser must be a member to hand objects to the owner; from 16 on creating a role gives ADMIN but neither SET nor INHERIT.
    IF current_setting('server_version_num')::integer >= 160000 THEN
        IF NOT (pg_has_role('livewell_owner', 'SET') AND pg_has_role('livewell_owner', 'USAGE')) THEN
            EXECUTE 'GRANT livewell_owner TO CURRENT_USER WITH SET TRUE, INHERIT TRUE';
        END IF;
    ELSIF NOT pg_has_role('livewell_owner', 'USAGE') THEN
        EXECUTE 'GRANT livewell_owner TO CURRENT_USER';
    END IF;
END
$roles$;

-- ── settings ──
SET LOCAL search_path = '';
SET LOCAL timezone = 'UTC';
SET LOCAL datestyle = 'ISO, YMD';
SET LOCAL intervalstyle = 'postgres';
SET LOCAL quote_all_identifiers = off;
SET LOCAL extra_float_digits = 1;
SET LOCAL bytea_output = 'hex';

-- ── schema ──
SET LOCAL livewell.in_transaction = 'yes';
DO $schema$
BEGIN
    IF current_setting('livewell.in_transaction', true) IS DISTINCT FROM 'yes' THEN
        RAISE EXCEPTION 'this script must run as one transaction' USING HINT = 'psql -1 -f FILE';
    END IF;
    CREATE SCHEMA livewell AUTHORIZATION livewell_owner;
END
$schema$;
COMMENT ON SCHEMA livewell IS 'Livewell: jobs and fresh data. Changed only by: livewell migrate.';

-- ── owner ──
SET LOCAL ROLE livewell_owner;

-- ── settings ──
SET LOCAL check_function_bodies = off;

-- ── db/001_base.sql ──
-- The ground everything else stands on: what is installed here, and which failures were tolerated.
--
-- Instants default to now(), the start of the migrating transaction: livewell.now() does not exist yet, and rows of one release should carry one instant.

-- One row: the release this schema belongs to, and what its tables looked like when the migrator left them.
CREATE TABLE livewell.release (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version text NOT NULL,
    catalog jsonb NOT NULL,             -- object → definition; `livewell migrate --check` compares it with the live catalog
    applied_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE livewell.release IS 'One row: the release of this schema and the catalog as the migrator left it.';

-- One row per numbered file that ran. The file is never edited after its release, so its checksum must stay.
CREATE TABLE livewell.migration (
    package text NOT NULL,
    number integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    release text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (package, number)
);
COMMENT ON TABLE livewell.migration IS 'One row per numbered SQL file that ran, with the checksum it had.';

-- One row per function file. It is applied again when the file's checksum changes, or when someone changed the function by hand.
CREATE TABLE livewell.function_source (
    package text NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,             -- of the file
    installed_hash text NOT NULL,       -- of pg_get_functiondef() right after applying the file
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (package, name)
);
COMMENT ON TABLE livewell.function_source IS 'One row per function file: its checksum, and the hash of the function it installed.';

-- One row per grants.sql; none when the schema was installed without roles.
CREATE TABLE livewell.grant_source (
    package text PRIMARY KEY,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE livewell.grant_source IS 'One row per grants file that ran, with the checksum it had.';

-- Failures we tolerated, counted per hour. Written by livewell.warn() only.
--
-- Why (hour, place, what) is not unique: a unique row stays locked until the transaction that counted in it ends, so one long transaction would hold up every
-- other that meets the same warning. warn() skips a locked row and adds another; readers sum. Without contention there is one row.
CREATE TABLE livewell.warning (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hour timestamptz NOT NULL,          -- start of the hour, UTC
    n bigint NOT NULL DEFAULT 1,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    place text NOT NULL,                -- where: 'queue.claim'
    what text NOT NULL,                 -- what was tolerated, without values, so that it counts up
    sample text                         -- the latest example, redacted
)
WITH (
    -- Few rows, updated often, no indexed column among the updated ones: room on the page keeps updates HOT, and a fixed threshold keeps it small (T6).
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 1000
);
CREATE INDEX warning_hour_idx ON livewell.warning (hour, place, what);
COMMENT ON TABLE livewell.warning IS 'Tolerated failures per hour, place and kind; sum n, as one kind can have several rows.';

-- ── db/functions/now.sql ──
-- The one clock of Livewell.
--
-- Called by: every function that needs an instant, once, into v_now, after it took the locks it waits for.
-- Why not now(): that is the start of the transaction, which for a function that waited is long ago. A test replaces this function to travel in time.
-- Why plpgsql: search_path = '' keeps SQL functions from being inlined, and then this is faster (1.6 µs against 2.6 µs a call on 15, 0.9 against 1.6 on 18).
-- Why never inside WHERE: it is volatile, so no index can serve the comparison (T9).
CREATE OR REPLACE FUNCTION livewell.now()
RETURNS timestamptz
LANGUAGE plpgsql
VOLATILE
PARALLEL SAFE
SET search_path = ''
AS $$
BEGIN
    RETURN clock_timestamp();
END
$$;
COMMENT ON FUNCTION livewell.now IS 'The database clock; the only source of instants that are compared.';
REVOKE ALL ON FUNCTION livewell.now FROM PUBLIC;

-- ── db/functions/prune_warnings.sql ──
-- Delete old warnings, a bounded number per call.
--
-- Called by: the cleanup of a worker, until it answers less than p_limit.
-- Index:     warning_hour_idx (hour, place, what)
-- Why SKIP LOCKED: two cleaners at once share the work; neither waits.
CREATE OR REPLACE FUNCTION livewell.prune_warnings(p_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
    v_before timestamptz := v_now - make_interval(days => p_days);
    v_deleted integer;
BEGIN
    DELETE FROM livewell.warning w
    WHERE w.id = ANY (ARRAY(
        SELECT old.id
        FROM livewell.warning old
        WHERE old.hour < v_before
        ORDER BY old.hour
        LIMIT greatest(p_limit, 0)
        FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    RETURN v_deleted;
END
$$;
COMMENT ON FUNCTION livewell.prune_warnings IS 'Deletes at most p_limit warnings older than p_days, and answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_warnings FROM PUBLIC;

-- ── db/functions/redact.sql ──
-- Mask what looks like a secret.
--
-- Called by: warn(), and whoever shows text that came from outside.
-- Types are qualified because warn() calls this with its owner's rights, see there.
-- Masks too much rather than too little: a path that is hidden costs a look at the log, a password that is shown costs a rotation.
-- The text is cut to 8,000 characters before and 4,000 after, so a secret that straddles the first cut does not survive the second.
CREATE OR REPLACE FUNCTION livewell.redact(p_text text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
STRICT
PARALLEL SAFE
SET search_path = ''
AS $$
DECLARE
    v_text pg_catalog.text := left(p_text, 8000);
BEGIN
    -- scheme://user:password@host, up to the last @, as people write unescaped @ and / into passwords
    v_text := regexp_replace(v_text, '(://[^\s/:@]*:)[^\s"''<>]*@', '\1***@', 'g');
    -- scheme://token@host
    v_text := regexp_replace(v_text, '://[^\s/@*]+@', '://***@', 'g');
    -- Authorization: Basic dXNlcg==
    v_text := regexp_replace(v_text, '(authorization["'']?\s*[=:]\s*["'']?)([a-z]+\s+)?[^\s"'',;]+', '\1***', 'gi');
    v_text := regexp_replace(v_text, '\m(bearer\s+)[^\s"'',;]+', '\1***', 'gi');
    -- password=x, "api_key": "x", client_secret='a b', ?apikey=x&…
    v_text := regexp_replace(
        v_text,
        '((?:passw(?:or)?d|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|token|signature)[a-z0-9_-]*["'']?\s*[=:]\s*)'
        '(?:"(?:[^"\\]|\\.)*"?|''(?:[^''\\]|\\.)*''?|[^\s&,;"'')}\]]+)',
        '\1***', 'gi'
    );
    -- our own keys, and JSON web tokens
    v_text := regexp_replace(v_text, '\mlw_[a-z0-9_-]{8,}', 'lw_***', 'gi');
    v_text := regexp_replace(v_text, '\meyJ[a-z0-9_-]+\.[a-z0-9_-]+\.[a-z0-9_-]*', '***', 'gi');
    RETURN left(v_text, 4000);
END
$$;
COMMENT ON FUNCTION livewell.redact IS 'Masks passwords, keys and tokens in a text, and bounds its length.';
REVOKE ALL ON FUNCTION livewell.redact FROM PUBLIC;

-- ── db/functions/warn.sql ──
-- Count a failure we tolerate.
--
-- Called by: any function or process that goes on after something went wrong.
-- Index:     warning_hour_idx (hour, place, what)
-- Why SECURITY DEFINER: livewell_api has no table rights, and nobody shall write a text that was not redacted and bounded.
-- Why pg_catalog.text: even with search_path = '' Postgres looks for types in pg_temp first, and a caller's domain "text" would run its checks as the owner.
-- Why SKIP LOCKED: a warning must never make anyone wait. The row we count in stays locked until our caller commits; who meets it meanwhile takes or adds another row.
-- Bounds:    texts 100, 200 and 500 characters; about 1,000 rows an hour, what comes after is counted as '(more)'.
CREATE OR REPLACE FUNCTION livewell.warn(p_where text, p_what text, p_sample text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    c_rows_max CONSTANT integer := 1000;
    c_spare CONSTANT integer := 100;            -- rows that '(more)' may have beyond that, for callers that hold one each
    v_place pg_catalog.text := coalesce(nullif(left(livewell.redact(p_where), 100), ''), '(none)');
    v_what pg_catalog.text := coalesce(nullif(left(livewell.redact(p_what), 200), ''), '(none)');
    v_sample pg_catalog.text := left(livewell.redact(p_sample), 500);
    v_now pg_catalog.timestamptz := livewell.now();
    v_hour pg_catalog.timestamptz := date_trunc('hour', v_now, 'UTC');
    v_room integer;
BEGIN
    IF current_setting('transaction_read_only')::boolean THEN
        RETURN;     -- nowhere to write it; failing the reader would be worse
    END IF;
    FOREACH v_room IN ARRAY ARRAY[c_rows_max, c_rows_max + c_spare] LOOP
        -- A stricter isolation level would fail (40001) on a row that someone counted in since its snapshot: there we only add.
        IF current_setting('transaction_isolation') = 'read committed' THEN
            UPDATE livewell.warning w
            SET n = w.n + 1, last_at = greatest(w.last_at, v_now), sample = coalesce(v_sample, w.sample)
            WHERE w.id = (
                SELECT free.id
                FROM livewell.warning free
                WHERE free.hour = v_hour AND free.place = v_place AND free.what = v_what
                LIMIT 1
                FOR UPDATE SKIP LOCKED
            );
            IF FOUND THEN
                RETURN;
            END IF;
        END IF;
        IF (SELECT count(*) FROM (SELECT FROM livewell.warning w WHERE w.hour = v_hour LIMIT v_room) AS taken) < v_room THEN
            INSERT INTO livewell.warning (hour, first_at, last_at, place, what, sample)
            VALUES (v_hour, v_now, v_now, v_place, v_what, v_sample);
            RETURN;
        END IF;
        v_sample := left(v_place || ': ' || v_what, 500);
        v_place := '(more)';
        v_what := '(more)';
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.warn IS 'Counts a tolerated failure: bounded, redacted, and never waits for another transaction.';
REVOKE ALL ON FUNCTION livewell.warn FROM PUBLIC;

-- ── db/grants.sql ──
-- Who may do what with the objects of db. Runs as livewell_owner, last in its package, again whenever anything in the package changed.
-- GRANT only adds: to take a right away, write the REVOKE here.

-- EXECUTE for PUBLIC is a default of the whole database, so it cannot be revoked IN SCHEMA livewell; the owner owns nothing else, so this is as narrow.
ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
REVOKE ALL ON SCHEMA livewell FROM PUBLIC;

GRANT USAGE ON SCHEMA livewell TO livewell_api, livewell_operate, livewell_hub, livewell_worker, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.now() TO livewell_api, livewell_operate, livewell_hub, livewell_worker, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.warn(text, text, text) TO livewell_api, livewell_operate, livewell_hub, livewell_worker;

-- What a process reads to learn whether this schema fits it. livewell_api has no table rights: a server checks with another of its pools.
GRANT SELECT ON livewell.release, livewell.migration, livewell.function_source, livewell.grant_source
    TO livewell_operate, livewell_hub, livewell_worker, livewell_readonly;

GRANT SELECT ON livewell.warning TO livewell_operate, livewell_readonly;
GRANT SELECT, UPDATE, DELETE ON livewell.warning TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.prune_warnings(integer, integer) TO livewell_worker;

-- ── queue/001_tables.sql ──
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

-- ── queue/functions/add_stats.sql ──
-- Add what a worker counted since its last report.
--
-- Called by: worker, every 10 s. Rows in key order, so two workers that add to the same minute do not deadlock.
CREATE OR REPLACE FUNCTION livewell.add_stats(p_queues text[], p_kinds text[], p_outcomes text[], p_ns bigint[], p_ms bigint[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_minute timestamptz := date_trunc('minute', livewell.now());
BEGIN
    INSERT INTO livewell.stat AS s (minute, queue, kind, outcome, n, ms)
    SELECT v_minute, g.queue, g.kind, g.outcome, g.n, g.ms
    FROM unnest(p_queues, p_kinds, p_outcomes, p_ns, p_ms) AS g (queue, kind, outcome, n, ms)
    ORDER BY g.queue COLLATE "C", g.kind COLLATE "C", g.outcome COLLATE "C"
    ON CONFLICT (minute, queue, kind, outcome) DO UPDATE SET n = s.n + excluded.n, ms = s.ms + excluded.ms;
END
$$;
COMMENT ON FUNCTION livewell.add_stats IS 'Adds counts and milliseconds to the current minute.';
REVOKE ALL ON FUNCTION livewell.add_stats FROM PUBLIC;

-- ── queue/functions/cancel_job.sql ──
-- Cancel one job: a waiting one at once, a running one by asking its worker.
--
-- Called by: clients, CLI.
-- Answer:    cancelled | requested (running: the worker stops it) | finished (too late) | unknown
CREATE OR REPLACE FUNCTION livewell.cancel_job(p_id bigint)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_state livewell.job_state;
BEGIN
    -- Waits for a claim or finish in flight: those are short.
    SELECT j.state INTO v_state FROM livewell.job j WHERE j.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        IF EXISTS (SELECT FROM livewell.job_history h WHERE h.id = p_id) OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = p_id) THEN
            RETURN 'finished';
        END IF;
        RETURN 'unknown';
    END IF;
    IF v_state = 'running' THEN
        UPDATE livewell.job j SET cancel_requested = true WHERE j.id = p_id;
        RETURN 'requested';
    END IF;
    PERFORM livewell.settle_jobs(ARRAY[p_id], ARRAY['cancelled'], ARRAY[NULL::text], ARRAY['cancelled while it waited'], ARRAY[NULL::float8]);
    RETURN 'cancelled';
END
$$;
COMMENT ON FUNCTION livewell.cancel_job IS 'Cancels a waiting job at once, or asks the worker of a running one.';
REVOKE ALL ON FUNCTION livewell.cancel_job FROM PUBLIC;

-- ── queue/functions/claim_jobs.sql ──
-- Take up to p_limit ready jobs from the given queues, in the given order of queues; within a queue by lane, then rank, then id.
--
-- Called by: claimer (through exchange_jobs), inline worker.
-- Index:     job_ready_idx, job_suspect_idx; the UPDATE goes by primary key.
-- Order of the answer is not promised; sort by (lane, rank, id).
-- p_mark_ranks and p_mark_ids are marks, two for each queue (lane 0, lane 1): look only behind that place. A worker uses them while looking from the beginning is slow, as it is
-- when somebody holds an old snapshot and every job since then left an index entry that cannot be removed. Asked with empty marks,
-- it answers whether it was slow, in a row of its own (its rank: microseconds). What is enqueued before a mark waits until somebody looks from the beginning again: docs/adr/0004-scan-mark.md.
-- Why the lease is locked first, in its own statement: burying takes FOR UPDATE on the worker row, so a claim either commits before its worker is buried
-- (and recovery sees its jobs) or finds the row gone. FOR KEY SHARE, because FOR SHARE would block our own heartbeat.
-- Why the rows are locked first and updated by id: UPDATE … FROM (SELECT … LIMIT) ran 30-40 times slower with the statistics of an empty table.
-- Fences: one block of numbers per claim, one number of it per job (a nextval per job took 1.5 of 17 µs). width_bucket is a binary search.
CREATE OR REPLACE FUNCTION livewell.claim_jobs(
    p_worker bigint, p_queues text[], p_limit integer, p_empty boolean DEFAULT false, p_mark_ranks bigint[] DEFAULT NULL, p_mark_ids bigint[] DEFAULT NULL)
RETURNS SETOF livewell.claimed_job
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    v_limit     integer := least(p_limit, 10000);       -- fewer than a block of fences has
    v_found     bigint[] := '{}';
    v_queue     text;
    v_mark      integer;
    v_took      interval;
    v_fence     bigint;
    v_now       timestamptz;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'jobs are claimed on the primary only; this server is a replica' USING ERRCODE = 'LW001';
    END IF;
    PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN NEXT ROW('buried', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::livewell.claimed_job;
        RETURN;
    END IF;
    v_now := livewell.now();

    -- A job that was held by a worker when it died runs alone, so if it is the killer it takes nobody with it.
    IF p_empty AND v_limit > 0 THEN
        FOREACH v_queue IN ARRAY p_queues LOOP
            CONTINUE WHEN NOT EXISTS (SELECT FROM livewell.queue q WHERE q.name = v_queue AND q.paused_at IS NULL);
            v_found := ARRAY(
                SELECT s.id FROM livewell.job s WHERE s.queue = v_queue AND s.state = 'ready' AND s.lost > 0
                ORDER BY s.lane, s.rank, s.id LIMIT 1 FOR UPDATE SKIP LOCKED);
            EXIT WHEN cardinality(v_found) > 0;
        END LOOP;
    END IF;

    IF cardinality(v_found) = 0 THEN
        FOR v_place IN 1 .. cardinality(p_queues) LOOP
            v_queue := p_queues[v_place];
            CONTINUE WHEN NOT EXISTS (SELECT FROM livewell.queue q WHERE q.name = v_queue AND q.paused_at IS NULL);
            FOR v_lane IN 0 .. 1 LOOP
                EXIT WHEN cardinality(v_found) >= v_limit;
                v_mark := 2 * v_place - 1 + v_lane;
                v_found := v_found || ARRAY(
                    SELECT r.id FROM livewell.job r
                    WHERE r.queue = v_queue AND r.lane = v_lane AND r.state = 'ready' AND r.lost = 0
                      AND (r.rank, r.id) > (coalesce(p_mark_ranks[v_mark], -9223372036854775808), coalesce(p_mark_ids[v_mark], 0))
                    ORDER BY r.rank, r.id LIMIT v_limit - cardinality(v_found) FOR UPDATE SKIP LOCKED);
            END LOOP;
        END LOOP;
        v_took := livewell.now() - v_now;
        IF p_mark_ranks = '{}' AND v_took > interval '5 ms' + cardinality(v_found) * interval '20 microseconds' THEN
            RETURN NEXT ROW('slow', NULL, NULL, NULL, NULL, NULL, NULL, extract(epoch FROM v_took) * 1000000, NULL, NULL, NULL, NULL, NULL, NULL)::livewell.claimed_job;
        END IF;
    END IF;

    IF cardinality(v_found) > 0 THEN
        v_fence := nextval('livewell.fence_seq');
        v_found := ARRAY(SELECT i FROM unnest(v_found) AS i ORDER BY i);
        RETURN QUERY
        UPDATE livewell.job j
        SET state = 'running', worker = p_worker, fence = v_fence + width_bucket(j.id, v_found), attempt = j.attempt + 1, started_at = v_now, deadline_at = NULL
        WHERE j.id = ANY (v_found)
        RETURNING 'claimed', j.id, j.fence, j.attempt, j.max_attempts, j.lost, j.lane, j.rank, j.queue, j.kind, j.payload::text, j.unique_key, j.group_key, j.trace;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.claim_jobs IS 'Claims ready jobs for a worker incarnation, each under its own fence.';
REVOKE ALL ON FUNCTION livewell.claim_jobs FROM PUBLIC;

-- ── queue/functions/declare_queue.sql ──
-- Make sure a queue exists with this policy. Pausing is left as it is.
--
-- Called by: clients and workers at start, for every queue their tasks name.
-- Writes only when something differs: a fleet that starts together must not fight over one row.
CREATE OR REPLACE FUNCTION livewell.declare_queue(p_name text, p_attempts integer, p_backoff_base_seconds float8, p_backoff_cap_seconds float8, p_lost_max integer DEFAULT 5)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    IF EXISTS (SELECT FROM livewell.queue q WHERE q.name = p_name AND q.attempts = p_attempts
               AND q.backoff_base_seconds = p_backoff_base_seconds AND q.backoff_cap_seconds = p_backoff_cap_seconds AND q.lost_max = p_lost_max) THEN
        RETURN;
    END IF;
    INSERT INTO livewell.queue AS q (name, attempts, backoff_base_seconds, backoff_cap_seconds, lost_max, created_at)
    VALUES (p_name, p_attempts, p_backoff_base_seconds, p_backoff_cap_seconds, p_lost_max, v_now)
    ON CONFLICT (name) DO UPDATE
    SET attempts = excluded.attempts, backoff_base_seconds = excluded.backoff_base_seconds, backoff_cap_seconds = excluded.backoff_cap_seconds, lost_max = excluded.lost_max;
END
$$;
COMMENT ON FUNCTION livewell.declare_queue IS 'Creates a queue or brings its policy up to date.';
REVOKE ALL ON FUNCTION livewell.declare_queue FROM PUBLIC;

-- ── queue/functions/drop_history_day.sql ──
-- Drop the oldest history partition that is wholly older than p_keep_days. At most one per call.
--
-- Called by: worker, hourly, until it answers NULL.
-- SECURITY DEFINER: dropping a partition needs the owner; the only input is a number, and fewer than 1 day is refused.
-- lock_timeout: the drop needs a moment alone with the parent. If it cannot have it within 100 ms it gives up (55P03) and the caller tries later;
-- nobody who wants to finish a job waits longer than that because of us.
-- Types are qualified: search_path = '' still looks into pg_temp first for types, and a caller's own domain would run as us.
CREATE OR REPLACE FUNCTION livewell.drop_history_day(p_keep_days integer)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET lock_timeout = '100ms'
SET timezone = 'UTC'
AS $$
DECLARE
    v_today pg_catalog.date := livewell.now()::pg_catalog.date;
    v_name  pg_catalog.text;
BEGIN
    IF p_keep_days < 1 THEN
        RAISE EXCEPTION 'history is kept at least 1 day, not %', p_keep_days USING ERRCODE = 'LW003';
    END IF;
    SELECT c.relname INTO v_name
    FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'livewell.job_history'::pg_catalog.regclass AND c.relname < 'job_history_' || to_char(v_today - p_keep_days, 'YYYYMMDD')
    ORDER BY c.relname LIMIT 1;
    IF FOUND THEN
        EXECUTE format('DROP TABLE livewell.%I', v_name);
    END IF;
    RETURN v_name;
END
$$;
COMMENT ON FUNCTION livewell.drop_history_day IS 'Drops one expired daily partition of job_history; answers its name, or NULL when none is left.';
REVOKE ALL ON FUNCTION livewell.drop_history_day FROM PUBLIC;

-- ── queue/functions/edit_dead.sql ──
-- Mend the payload of a dead letter before it is redriven.
--
-- Called by: CLI `dead edit`, clients.
-- The bound is checked here: a redrive copies the stored form, and a compressed payload looks small to the trigger that measures new jobs.
CREATE OR REPLACE FUNCTION livewell.edit_dead(p_id bigint, p_payload jsonb)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF octet_length(p_payload::text) > 262144 THEN
        RAISE EXCEPTION 'the payload has % bytes; 262144 are allowed', octet_length(p_payload::text) USING ERRCODE = 'LW005';
    END IF;
    UPDATE livewell.dead_job d SET payload = p_payload WHERE d.id = p_id;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.edit_dead IS 'Replaces the payload of one dead letter; false when there is none with that id.';
REVOKE ALL ON FUNCTION livewell.edit_dead FROM PUBLIC;

-- ── queue/functions/enqueue_jobs.sql ──
-- Put jobs into the queue, one or many, in the caller's transaction.
--
-- Called by: every client, through Task.enqueue and enqueue_many; also plain SQL.
-- Input:     a JSON array of objects: id (from reserve_job_ids), queue, kind, payload, and optionally unique_key, group_key, call_key, lane (0, 1),
--            priority (-100 … 100), delay_seconds or run_at, max_attempts, trace.
-- Answer:    a row only for what was NOT inserted: merged (another live job has the key), known (this very id was accepted before: a retried call), or vanished
--            (the job with the key ended just now: nothing was inserted, ask once more).
-- Index:     job_unique_key_idx decides `keep`; two callers with overlapping keys insert in key order, so they wait for each other and never deadlock.
CREATE OR REPLACE FUNCTION livewell.enqueue_jobs(p_jobs jsonb, p_again boolean DEFAULT false)
RETURNS TABLE (asked_id bigint, answer text, job_id bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_missing   text;
    v_asked     integer := jsonb_array_length(p_jobs);
    v_inserted  bigint[];
BEGIN
    SELECT j.queue INTO v_missing
    FROM (SELECT DISTINCT e ->> 'queue' AS queue FROM jsonb_array_elements(p_jobs) e) j
    WHERE NOT EXISTS (SELECT FROM livewell.queue q WHERE q.name = j.queue)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'queue "%" is not declared', coalesce(v_missing, '(none)') USING ERRCODE = 'LW002';
    END IF;

    WITH given AS (
        SELECT g.*, q.attempts,
               coalesce(g.run_at, v_now + g.delay_seconds * interval '1 second', v_now) AS due_at
        FROM jsonb_to_recordset(p_jobs) AS g (
            id bigint, queue text, kind text, payload jsonb, unique_key text, group_key text, call_key text, lane smallint, priority smallint,
            delay_seconds float8, run_at timestamptz, max_attempts smallint, trace text)
        JOIN livewell.queue q ON q.name = g.queue
        -- A call repeated after an unknown commit: what was accepted then may be finished or dead by now.
        WHERE NOT p_again OR NOT (EXISTS (SELECT FROM livewell.job_history h WHERE h.id = g.id) OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = g.id))
        ORDER BY g.queue, g.unique_key, g.id
    ), born AS (
        INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, priority, lane, queue, kind, unique_key, group_key, call_key, payload, trace)
        SELECT id, (extract(epoch FROM greatest(due_at, v_now)) * 1000)::bigint - coalesce(priority, 0) * 60000, due_at, v_now,
               CASE WHEN due_at > v_now THEN 'delayed' ELSE 'ready' END::livewell.job_state,
               coalesce(max_attempts, attempts), coalesce(priority, 0), coalesce(lane, 1), queue, kind, unique_key, group_key, call_key, payload, trace
        FROM given
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT array_agg(id) INTO v_inserted FROM born;

    IF p_again THEN
        -- The first call's job may have ended while our insert waited for somebody else's key: our snapshot is older than its end, a new one is not.
        WITH twice AS (
            DELETE FROM livewell.job j
            WHERE j.id = ANY (v_inserted)
              AND (EXISTS (SELECT FROM livewell.job_history h WHERE h.id = j.id) OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = j.id))
            RETURNING j.id
        )
        SELECT array_agg(i) INTO v_inserted FROM unnest(v_inserted) AS i WHERE i NOT IN (SELECT t.id FROM twice t);
    END IF;

    IF cardinality(v_inserted) = v_asked THEN
        RETURN;
    END IF;
    -- A new statement, so a fresh snapshot: it sees the rows our insert collided with.
    RETURN QUERY
    SELECT g.id,
           CASE WHEN own.id IS NOT NULL OR past.id IS NOT NULL THEN 'known' WHEN other.id IS NOT NULL THEN 'merged' ELSE 'vanished' END,
           coalesce(own.id, past.id, other.id, g.id)
    FROM jsonb_to_recordset(p_jobs) AS g (id bigint, queue text, unique_key text)
    -- LATERAL with LIMIT: one index probe per job asked for. As plain joins these read the whole live table up to some 10,000 rows (jsonb is taken for 100 rows).
    LEFT JOIN LATERAL (SELECT j.id FROM livewell.job j WHERE j.id = g.id LIMIT 1) own ON true
    LEFT JOIN LATERAL (
        SELECT h.id FROM livewell.job_history h WHERE p_again AND h.id = g.id
        UNION ALL
        SELECT d.id FROM livewell.dead_job d WHERE p_again AND d.id = g.id
        LIMIT 1) past ON true
    LEFT JOIN LATERAL (
        SELECT j.id FROM livewell.job j WHERE j.queue = g.queue AND j.unique_key = g.unique_key AND j.held_by IS DISTINCT FROM 'k' LIMIT 1) other ON true
    WHERE g.id <> ALL (coalesce(v_inserted, '{}'));
END
$$;
COMMENT ON FUNCTION livewell.enqueue_jobs IS 'Inserts jobs; answers only for those that were merged into a live job with the same key or were accepted before.';
REVOKE ALL ON FUNCTION livewell.enqueue_jobs FROM PUBLIC;

-- ── queue/functions/ensure_history_days.sql ──
-- Make the history partitions of today … + p_ahead days, where they are missing.
--
-- Called by: migrate, worker start, and hourly.
-- SECURITY DEFINER: workers insert history but do not own it; making a day's partition needs the owner. Its only input is a bounded number.
-- CREATE LIKE + ATTACH takes SHARE UPDATE EXCLUSIVE on the parent, which no insert waits for. No DEFAULT partition: it would block making days.
-- Types are qualified: search_path = '' still looks into pg_temp first for types, and a caller's own domain would run as us.
CREATE OR REPLACE FUNCTION livewell.ensure_history_days(p_ahead integer)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET lock_timeout = '100ms'
SET timezone = 'UTC'
AS $$
DECLARE
    v_today pg_catalog.date := livewell.now()::pg_catalog.date;
    v_day   pg_catalog.date;
    v_name  pg_catalog.text;
    v_made  integer := 0;
BEGIN
    FOR v_day IN SELECT v_today + i FROM generate_series(0, least(greatest(p_ahead, 1), 60)) AS i LOOP
        v_name := 'job_history_' || to_char(v_day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass('livewell.' || v_name) IS NOT NULL;
        -- One maker at a time; whoever comes second finds it made.
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(hashtextextended('livewell.' || v_name, 0)) OR to_regclass('livewell.' || v_name) IS NOT NULL;
        EXECUTE format('CREATE TABLE livewell.%I (LIKE livewell.job_history INCLUDING DEFAULTS)', v_name);
        EXECUTE format('COMMENT ON TABLE livewell.%I IS %L', v_name, 'Jobs finished on ' || v_day || ' (UTC).');
        EXECUTE format('ALTER TABLE livewell.job_history ATTACH PARTITION livewell.%I FOR VALUES FROM (%L) TO (%L)',
                       v_name, v_day::pg_catalog.timestamptz, (v_day + 1)::pg_catalog.timestamptz);
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END
$$;
COMMENT ON FUNCTION livewell.ensure_history_days IS 'Creates missing daily partitions of job_history; answers how many it made.';
REVOKE ALL ON FUNCTION livewell.ensure_history_days FROM PUBLIC;

-- ── queue/functions/exchange_jobs.sql ──
-- Finish what is done and claim what comes next, in one call and one commit.
--
-- Called by: the worker, for every batch.
-- Why two statements inside: in one statement the slots that the finish frees would be invisible to the claim.
-- Why the lease is locked before anything is finished: release_worker takes lease, then jobs; the other way round the two deadlock.
-- p_limit 0 claims nothing; the answer then has only fenced rows.
CREATE OR REPLACE FUNCTION livewell.exchange_jobs(
    p_worker bigint, p_ids bigint[], p_fences bigint[], p_others jsonb, p_queues text[], p_limit integer, p_empty boolean,
    p_mark_ranks bigint[] DEFAULT NULL, p_mark_ids bigint[] DEFAULT NULL)
RETURNS SETOF livewell.claimed_job
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    IF p_limit > 0 AND (cardinality(p_ids) > 0 OR p_others IS NOT NULL) THEN
        PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;
    END IF;
    IF cardinality(p_ids) > 0 OR p_others IS NOT NULL THEN
        RETURN QUERY
        SELECT 'fenced'::text, f.job_id, f.job_fence, NULL::smallint, NULL::smallint, NULL::smallint, NULL::smallint, NULL::bigint,
               NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text
        FROM livewell.finish_jobs(p_worker, p_ids, p_fences, p_others) f;
    END IF;
    IF p_limit > 0 THEN
        RETURN QUERY SELECT c.* FROM livewell.claim_jobs(p_worker, p_queues, p_limit, p_empty, p_mark_ranks, p_mark_ids) c;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.exchange_jobs IS 'finish_jobs and claim_jobs in one round trip and one transaction.';
REVOKE ALL ON FUNCTION livewell.exchange_jobs FROM PUBLIC;

-- ── queue/functions/finish_jobs.sql ──
-- End jobs we hold: p_ids succeeded, p_others (a JSON array of {id, fence, outcome, reason, error, delay_seconds}) ended some other way.
--
-- Called by: finisher (through exchange_jobs), job.transaction() as its last statement before COMMIT.
-- Answer:    a row for each one that was not ours any more (fenced); nothing was written for those.
-- Index:     primary key. Deliberately no "state = 'running'" in the WHERE: it would offer job_worker_idx to the planner.
-- Why two lists are enough for the successes: a fence is handed to one job once, so a row whose id AND fence are both in our lists is the pair we were given.
-- width_bucket is a binary search in the sorted fences; = ANY (p_fences) looks at each of them for each row (2.3 of 17 µs per job in batches of 500).
CREATE OR REPLACE FUNCTION livewell.finish_jobs(p_worker bigint, p_ids bigint[], p_fences bigint[], p_others jsonb DEFAULT NULL)
RETURNS TABLE (job_id bigint, job_fence bigint)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz;
    v_fences    bigint[];
    v_n         integer;
    v_ids       bigint[];
    v_outcomes  text[];
    v_reasons   text[];
    v_errors    text[];
    v_delays    float8[];
BEGIN
    IF cardinality(p_ids) > 0 THEN
        v_now := livewell.now();
        v_fences := ARRAY(SELECT f FROM unnest(p_fences) AS f ORDER BY f);
        WITH gone AS (
            DELETE FROM livewell.job j
            WHERE j.id = ANY (p_ids) AND j.fence = v_fences[width_bucket(j.fence, v_fences)] AND j.worker = p_worker
            RETURNING j.id, j.fence, j.created_at, j.started_at, j.attempt, j.queue, j.kind
        )
        INSERT INTO livewell.job_history (id, fence, worker, created_at, started_at, finished_at, attempt, outcome, queue, kind)
        SELECT g.id, g.fence, p_worker, g.created_at, g.started_at, v_now, g.attempt, 'succeeded', g.queue, g.kind FROM gone g;
        GET DIAGNOSTICS v_n = ROW_COUNT;
        IF v_n < cardinality(p_ids) THEN
            -- Rare, so it may be dear: to collect what was done in the statement above took 0.8 of 15 µs per job. Not ours is what this transaction has not written;
            -- behind a savepoint that is all of a batch in which anything was fenced, which errs on the safe side.
            RETURN QUERY
            SELECT a.id, a.fence FROM unnest(p_ids, p_fences) AS a (id, fence)
            WHERE v_n = 0 OR NOT EXISTS (
                SELECT FROM livewell.job_history h WHERE h.id = a.id AND h.fence = a.fence AND h.xmin = pg_catalog.pg_current_xact_id()::pg_catalog.xid);
        END IF;
    END IF;

    IF p_others IS NOT NULL THEN
        WITH owned AS (
            SELECT j.id, o.outcome, o.reason, o.error, o.delay_seconds
            FROM jsonb_to_recordset(p_others) AS o (id bigint, fence bigint, outcome text, reason text, error text, delay_seconds float8)
            JOIN livewell.job j ON j.id = o.id AND j.fence = o.fence AND j.worker = p_worker
            ORDER BY j.id
            FOR UPDATE OF j
        )
        SELECT array_agg(w.id), array_agg(w.outcome), array_agg(w.reason), array_agg(w.error), array_agg(w.delay_seconds)
        INTO v_ids, v_outcomes, v_reasons, v_errors, v_delays FROM owned w;
        PERFORM livewell.settle_jobs(v_ids, v_outcomes, v_reasons, v_errors, v_delays);
        RETURN QUERY
        SELECT o.id, o.fence FROM jsonb_to_recordset(p_others) AS o (id bigint, fence bigint) WHERE o.id <> ALL (coalesce(v_ids, '{}'));
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.finish_jobs IS 'Finishes many held jobs with mixed outcomes; returns those the worker no longer owned.';
REVOKE ALL ON FUNCTION livewell.finish_jobs FROM PUBLIC;

-- ── queue/functions/hasten_job.sql ──
-- Run a delayed job now instead of at its time.
--
-- Called by: CLI `jobs retry`, clients.
CREATE OR REPLACE FUNCTION livewell.hasten_job(p_id bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.job j SET state = 'ready', run_at = v_now, rank = (extract(epoch FROM v_now) * 1000)::bigint - j.priority * 60000
    WHERE j.id = p_id AND j.state = 'delayed';
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.hasten_job IS 'Makes one delayed job ready at once; false when it was not delayed.';
REVOKE ALL ON FUNCTION livewell.hasten_job FROM PUBLIC;

-- ── queue/functions/list_dead.sql ──
-- A page of dead letters by id; keyset, never OFFSET.
--
-- Called by: CLI `dead list`, clients.
CREATE OR REPLACE FUNCTION livewell.list_dead(p_queue text, p_kind text, p_after bigint, p_limit integer)
RETURNS TABLE (id bigint, queue text, kind text, reason text, attempt smallint, lost smallint, died_at timestamptz, error text)
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT d.id, d.queue, d.kind, d.reason, d.attempt, d.lost, d.died_at, d.error
    FROM livewell.dead_job d
    WHERE d.id > coalesce(p_after, 0) AND (p_queue IS NULL OR d.queue = p_queue) AND (p_kind IS NULL OR d.kind = p_kind)
    ORDER BY d.id LIMIT least(greatest(p_limit, 1), 1000)
$$;
COMMENT ON FUNCTION livewell.list_dead IS 'A page of dead letters after a given id.';
REVOKE ALL ON FUNCTION livewell.list_dead FROM PUBLIC;

-- ── queue/functions/list_jobs.sql ──
-- A page of live jobs by id, for people and tools; keyset, never OFFSET.
--
-- Called by: CLI `jobs list`, clients. p_after: the last id of the page before.
CREATE OR REPLACE FUNCTION livewell.list_jobs(p_queue text, p_state text, p_after bigint, p_limit integer)
RETURNS TABLE (id bigint, queue text, kind text, state text, lane smallint, priority smallint, attempt smallint, max_attempts smallint, lost smallint,
               progress smallint, progress_note text, worker text, run_at timestamptz, created_at timestamptz, started_at timestamptz, last_error text)
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT j.id, j.queue, j.kind, j.state::text, j.lane, j.priority, j.attempt, j.max_attempts, j.lost, j.progress, j.progress_note,
           w.name, j.run_at, j.created_at, j.started_at, j.last_error
    FROM livewell.job j LEFT JOIN livewell.worker w ON w.id = j.worker
    WHERE j.id > coalesce(p_after, 0) AND (p_queue IS NULL OR j.queue = p_queue) AND (p_state IS NULL OR j.state = p_state::livewell.job_state)
    ORDER BY j.id LIMIT least(greatest(p_limit, 1), 1000)
$$;
COMMENT ON FUNCTION livewell.list_jobs IS 'A page of live jobs after a given id, filtered by queue and state.';
REVOKE ALL ON FUNCTION livewell.list_jobs FROM PUBLIC;

-- ── queue/functions/list_queues.sql ──
-- Every queue with its policy and what waits in it.
--
-- Called by: CLI `queues list`. Counts live rows only; finished work comes from stat.
CREATE OR REPLACE FUNCTION livewell.list_queues()
RETURNS TABLE (name text, paused_at timestamptz, attempts smallint, ready bigint, delayed bigint, held bigint, running bigint, dead bigint,
               oldest_ready_seconds float8, overdue_delayed bigint, workers bigint, done_per_minute float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT q.name, q.paused_at, q.attempts, coalesce(j.ready, 0), coalesce(j.delayed, 0), coalesce(j.held, 0), coalesce(j.running, 0),
           (SELECT count(*) FROM livewell.dead_job d WHERE d.queue = q.name),
           extract(epoch FROM v_now - j.oldest)::float8, coalesce(j.overdue, 0),
           (SELECT count(*) FROM livewell.worker w WHERE q.name = ANY (w.queues) AND w.expires_at > v_now),
           coalesce((SELECT sum(s.n)::float8 / 5 FROM livewell.stat s WHERE s.queue = q.name AND s.outcome = 'succeeded' AND s.minute > v_now - interval '5 minutes'), 0)
    FROM livewell.queue q
    LEFT JOIN (
        SELECT l.queue, count(*) FILTER (WHERE l.state = 'ready') AS ready, count(*) FILTER (WHERE l.state = 'delayed') AS delayed,
               count(*) FILTER (WHERE l.state = 'held') AS held, count(*) FILTER (WHERE l.state = 'running') AS running,
               min(l.run_at) FILTER (WHERE l.state = 'ready') AS oldest,
               -- Q12: a delayed job past its time by a minute is stuck, and seen.
               count(*) FILTER (WHERE l.state = 'delayed' AND l.run_at < v_now - interval '1 minute') AS overdue
        FROM livewell.job l GROUP BY l.queue) j ON j.queue = q.name
    ORDER BY q.name;
END
$$;
COMMENT ON FUNCTION livewell.list_queues IS 'Queues with counts by state, age of the oldest ready job, live workers and recent throughput.';
REVOKE ALL ON FUNCTION livewell.list_queues FROM PUBLIC;

-- ── queue/functions/list_workers.sql ──
-- Every worker incarnation with its lease and how many jobs it holds.
--
-- Called by: CLI `queues workers`.
-- Index:     job_worker_idx.
CREATE OR REPLACE FUNCTION livewell.list_workers()
RETURNS TABLE (id bigint, name text, version text, queues text[], slots integer, holds bigint, started_at timestamptz, renewed_seconds_ago float8, lease_left_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT w.id, w.name, w.version, w.queues, w.slots, (SELECT count(*) FROM livewell.job j WHERE j.state = 'running' AND j.worker = w.id), w.started_at,
           extract(epoch FROM v_now - w.renewed_at)::float8, extract(epoch FROM w.expires_at - v_now)::float8
    FROM livewell.worker w ORDER BY w.id LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_workers IS 'Workers, their leases and how much they hold.';
REVOKE ALL ON FUNCTION livewell.list_workers FROM PUBLIC;

-- ── queue/functions/maintain.sql ──
-- One turn of the queue's own upkeep: promote what is due, recover what is lost. At most once per interval for the whole fleet.
--
-- Called by: any worker, every second. Whoever finds the tick due does it; a locked or early tick answers ran = false at once.
CREATE OR REPLACE FUNCTION livewell.maintain(p_worker bigint, p_interval_seconds float8, p_grace_seconds float8, p_limit integer DEFAULT 5000)
RETURNS TABLE (ran boolean, promoted integer, buried integer, lost integer, overdue integer)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_promoted  integer;
BEGIN
    PERFORM FROM livewell.tick t WHERE t.name = 'maintain' FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        INSERT INTO livewell.tick (name, due_at) SELECT 'maintain', '-infinity' WHERE NOT EXISTS (SELECT FROM livewell.tick t WHERE t.name = 'maintain') ON CONFLICT DO NOTHING;
        RETURN QUERY SELECT false, 0, 0, 0, 0;
        RETURN;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.tick t SET due_at = v_now + p_interval_seconds * interval '1 second', last_at = v_now, last_worker = p_worker, n = t.n + 1
    WHERE t.name = 'maintain' AND t.due_at <= v_now;
    IF NOT FOUND THEN
        RETURN QUERY SELECT false, 0, 0, 0, 0;
        RETURN;
    END IF;
    v_promoted := livewell.promote_jobs(p_limit);
    RETURN QUERY SELECT true, v_promoted, r.buried, r.lost, r.overdue FROM livewell.recover_jobs(p_worker, p_limit, p_grace_seconds) r;
END
$$;
COMMENT ON FUNCTION livewell.maintain IS 'Promotes due jobs and recovers lost ones, once per interval for all workers together.';
REVOKE ALL ON FUNCTION livewell.maintain FROM PUBLIC;

-- ── queue/functions/pause_queue.sql ──
-- Stop or start claiming from a queue. What already runs goes on.
--
-- Called by: CLI `queues pause|resume`, clients.
CREATE OR REPLACE FUNCTION livewell.pause_queue(p_name text, p_paused boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.queue q SET paused_at = CASE WHEN p_paused THEN coalesce(q.paused_at, v_now) END WHERE q.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.pause_queue IS 'Pauses or resumes a queue; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.pause_queue FROM PUBLIC;

-- ── queue/functions/promote_jobs.sql ──
-- Make delayed jobs ready whose time has come.
--
-- Called by: maintain(), every second, by any worker.
-- Index:     job_delayed_idx.
-- The rank counts from run_at, so a job that waited for its time is not behind everything enqueued meanwhile.
CREATE OR REPLACE FUNCTION livewell.promote_jobs(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_n     integer;
BEGIN
    UPDATE livewell.job j SET state = 'ready', rank = (extract(epoch FROM j.run_at) * 1000)::bigint - j.priority * 60000
    WHERE j.id = ANY (ARRAY(
        SELECT d.id FROM livewell.job d WHERE d.state = 'delayed' AND d.run_at <= v_now ORDER BY d.run_at LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.promote_jobs IS 'Turns due delayed jobs ready; answers how many.';
REVOKE ALL ON FUNCTION livewell.promote_jobs FROM PUBLIC;

-- ── queue/functions/prune_queue.sql ──
-- Delete dead letters and statistics past their time, a bounded page per call.
--
-- Called by: worker, hourly, until it answers 0.
-- Index:     dead_job_died_idx, stat_pkey.
CREATE OR REPLACE FUNCTION livewell.prune_queue(p_dead_days integer, p_stat_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_dead  integer;
    v_stat  integer;
BEGIN
    DELETE FROM livewell.dead_job d WHERE d.id = ANY (ARRAY(
        -- Q7: thirty days at least, whatever the caller says.
        SELECT o.id FROM livewell.dead_job o WHERE o.died_at < v_now - greatest(p_dead_days, 30) * interval '1 day' ORDER BY o.died_at LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_dead = ROW_COUNT;
    DELETE FROM livewell.stat s WHERE s.ctid = ANY (ARRAY(
        SELECT o.ctid FROM livewell.stat o WHERE o.minute < v_now - greatest(p_stat_days, 1) * interval '1 day' ORDER BY o.minute LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_stat = ROW_COUNT;
    RETURN v_dead + v_stat;
END
$$;
COMMENT ON FUNCTION livewell.prune_queue IS 'Removes expired dead letters and statistics; answers how many rows went.';
REVOKE ALL ON FUNCTION livewell.prune_queue FROM PUBLIC;

-- ── queue/functions/reconcile_jobs.sql ──
-- Hand back jobs that are ours in the database but that we do not know of: a claim whose answer never arrived.
--
-- Called by: keeper, every fifth heartbeat and after a claim with an unknown outcome.
-- Index:     job_worker_idx.
-- p_mark: a fence seen before our oldest claim in flight was sent; what that claim may yet bring has higher fences and is left alone.
-- They were never started, so neither an attempt nor a loss is counted.
CREATE OR REPLACE FUNCTION livewell.reconcile_jobs(p_worker bigint, p_known bigint[], p_mark bigint)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_ids   bigint[];
    v_n     integer;
BEGIN
    v_ids := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.state = 'running' AND j.worker = p_worker AND j.fence <= p_mark AND j.fence <> ALL (p_known)
        ORDER BY j.id LIMIT 10000 FOR UPDATE SKIP LOCKED);
    v_n := cardinality(v_ids);
    IF v_n > 0 THEN
        PERFORM livewell.settle_jobs(v_ids, array_fill('released'::text, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]),
                                     array_fill(NULL::text, ARRAY[v_n]), array_fill(NULL::float8, ARRAY[v_n]));
    END IF;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.reconcile_jobs IS 'Returns to ready the jobs a worker holds without knowing it; answers how many.';
REVOKE ALL ON FUNCTION livewell.reconcile_jobs FROM PUBLIC;

-- ── queue/functions/recover_jobs.sql ──
-- Take back the jobs of workers whose lease has run out, and jobs past their own deadline.
--
-- Called by: maintain(), every second, by any worker.
-- Index:     job_worker_idx (as a skip scan: one probe per distinct holder), job_deadline_idx.
-- Why SKIP LOCKED: a row that is being finished right now is not stuck; waiting for it would deadlock with finish_jobs.
-- Why two statements: the first buries (deletes) expired workers; only a new snapshot then sees every claim they committed.
-- Only a steady caller buries: one that has itself renewed without a gap, up to now, for a whole lease (its own and the other's). After an outage everybody
-- is late, and nobody is dead. "Up to now": who wakes just before its lease ends has not yet noticed the gap that made the others late.
CREATE OR REPLACE FUNCTION livewell.recover_jobs(p_worker bigint, p_limit integer, p_grace_seconds float8)
RETURNS TABLE (buried integer, lost integer, overdue integer)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_steady    interval;
    v_buried    integer := 0;
    v_lost      bigint[];
    v_overdue   bigint[];
    v_n         integer;
BEGIN
    SELECT v_now - w.steady_since INTO v_steady FROM livewell.worker w
    WHERE w.id = p_worker AND v_now - w.renewed_at <= w.lease / 3 AND v_now - w.steady_since >= w.lease;
    IF FOUND THEN
        DELETE FROM livewell.worker w
        WHERE w.id = ANY (ARRAY(SELECT d.id FROM livewell.worker d WHERE d.expires_at < v_now AND d.lease <= v_steady ORDER BY d.id FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS v_buried = ROW_COUNT;
    END IF;

    WITH RECURSIVE holder AS (
        (SELECT j.worker FROM livewell.job j WHERE j.state = 'running' ORDER BY j.worker LIMIT 1)
        UNION ALL
        SELECT (SELECT j.worker FROM livewell.job j WHERE j.state = 'running' AND j.worker > h.worker ORDER BY j.worker LIMIT 1)
        FROM holder h WHERE h.worker IS NOT NULL
    ), dead AS (
        SELECT h.worker FROM holder h WHERE h.worker IS NOT NULL AND NOT EXISTS (SELECT FROM livewell.worker w WHERE w.id = h.worker)
    )
    -- Bounded: after an outage a million rows must not be one transaction.
    SELECT array_agg(x.id) INTO v_lost FROM (
        SELECT j.id FROM livewell.job j WHERE j.state = 'running' AND j.worker = ANY (ARRAY(SELECT d.worker FROM dead d))
        ORDER BY j.worker LIMIT p_limit FOR UPDATE SKIP LOCKED) x;
    v_n := coalesce(cardinality(v_lost), 0);
    IF v_n > 0 THEN
        PERFORM livewell.settle_jobs(v_lost, array_fill('lost'::text, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]),
                                     array_fill('its worker died or froze while holding it'::text, ARRAY[v_n]), array_fill(NULL::float8, ARRAY[v_n]));
    END IF;

    v_overdue := ARRAY(
        SELECT j.id FROM livewell.job j WHERE j.deadline_at < v_now - p_grace_seconds * interval '1 second'
        ORDER BY j.deadline_at LIMIT p_limit FOR UPDATE SKIP LOCKED);
    IF cardinality(v_overdue) > 0 THEN
        PERFORM livewell.settle_jobs(v_overdue, array_fill('retry'::text, ARRAY[cardinality(v_overdue)]), array_fill(NULL::text, ARRAY[cardinality(v_overdue)]),
                                     array_fill('ran past its deadline and did not stop'::text, ARRAY[cardinality(v_overdue)]),
                                     array_fill(NULL::float8, ARRAY[cardinality(v_overdue)]));
    END IF;
    RETURN QUERY SELECT v_buried, v_n, cardinality(v_overdue);
END
$$;
COMMENT ON FUNCTION livewell.recover_jobs IS 'Buries expired workers and takes back the running jobs of buried ones and those past their deadline.';
REVOKE ALL ON FUNCTION livewell.recover_jobs FROM PUBLIC;

-- ── queue/functions/redrive_dead.sql ──
-- Give dead letters another life: same id, attempts and losses at zero, ready now.
--
-- Called by: CLI `dead redrive`, clients. By ids, or by queue and kind (NULL: any), oldest first, at most p_limit.
-- A letter whose unique key is taken by a live job stays where it is and is counted as kept.
CREATE OR REPLACE FUNCTION livewell.redrive_dead(p_ids bigint[], p_queue text, p_kind text, p_limit integer)
RETURNS TABLE (redriven bigint, kept bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_picked    bigint[];
    v_born      bigint[];
BEGIN
    v_picked := ARRAY(
        SELECT d.id FROM livewell.dead_job d
        WHERE (p_ids IS NULL OR d.id = ANY (p_ids)) AND (p_queue IS NULL OR d.queue = p_queue) AND (p_kind IS NULL OR d.kind = p_kind)
        ORDER BY d.queue, d.unique_key, d.id LIMIT p_limit FOR UPDATE SKIP LOCKED);
    WITH born AS (
        INSERT INTO livewell.job (id, rank, batch_id, run_at, created_at, state, max_attempts, priority, lane, queue, kind, unique_key, group_key, call_key, payload, last_error, trace)
        SELECT d.id, (extract(epoch FROM v_now) * 1000)::bigint - d.priority * 60000, d.batch_id, v_now, d.created_at, 'ready', d.max_attempts, d.priority, d.lane,
               d.queue, d.kind, d.unique_key, d.group_key, d.call_key, d.payload, d.error, d.trace
        FROM livewell.dead_job d WHERE d.id = ANY (v_picked)
        ORDER BY d.queue, d.unique_key, d.id
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT coalesce(array_agg(b.id), '{}') INTO v_born FROM born b;
    DELETE FROM livewell.dead_job d WHERE d.id = ANY (v_born);
    RETURN QUERY SELECT cardinality(v_born)::bigint, (cardinality(v_picked) - cardinality(v_born))::bigint;
END
$$;
COMMENT ON FUNCTION livewell.redrive_dead IS 'Moves dead letters back into the queue; answers how many went and how many stayed because their key is taken.';
REVOKE ALL ON FUNCTION livewell.redrive_dead FROM PUBLIC;

-- ── queue/functions/register_worker.sql ──
-- Start a new worker incarnation: its row is its lease.
--
-- Called by: worker, at start and whenever it finds its row gone.
CREATE OR REPLACE FUNCTION livewell.register_worker(p_name text, p_version text, p_queues text[], p_kinds text[], p_slots integer, p_lease_seconds float8)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_id    bigint;
    v_lease interval := p_lease_seconds * interval '1 second';
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'workers register on the primary only; this server is a replica' USING ERRCODE = 'LW001';
    END IF;
    v_id := nextval('livewell.worker_id_seq');
    INSERT INTO livewell.worker (id, started_at, renewed_at, expires_at, steady_since, lease, slots, queues, kinds, name, version)
    VALUES (v_id, v_now, v_now, v_now + v_lease, v_now, v_lease, p_slots, p_queues, p_kinds, left(p_name, 200), left(p_version, 50));
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION livewell.register_worker IS 'Creates the lease row of a new worker incarnation and returns its id.';
REVOKE ALL ON FUNCTION livewell.register_worker FROM PUBLIC;

-- ── queue/functions/release_worker.sql ──
-- The end of a graceful stop: hand back everything still held and give up the lease, at once.
--
-- Called by: worker, last thing. Locks its own worker row FOR UPDATE first, so no claim of ours can slip in behind.
CREATE OR REPLACE FUNCTION livewell.release_worker(p_worker bigint)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_ids   bigint[];
    v_n     integer;
BEGIN
    DELETE FROM livewell.worker w WHERE w.id = p_worker;
    v_ids := ARRAY(SELECT j.id FROM livewell.job j WHERE j.state = 'running' AND j.worker = p_worker ORDER BY j.id FOR UPDATE);
    v_n := cardinality(v_ids);
    IF v_n > 0 THEN
        PERFORM livewell.settle_jobs(v_ids, array_fill('released'::text, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]),
                                     array_fill(NULL::text, ARRAY[v_n]), array_fill(NULL::float8, ARRAY[v_n]));
    END IF;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.release_worker IS 'Ends a worker incarnation and returns its jobs to ready; answers how many.';
REVOKE ALL ON FUNCTION livewell.release_worker FROM PUBLIC;

-- ── queue/functions/renew_worker.sql ──
-- The heartbeat: renew the lease, set deadlines of handlers that have started, learn what to cancel.
--
-- Called by: keeper, every heartbeat.
-- Index:     primary keys; job_cancel_idx; job_suspect_idx.
-- A late heartbeat is valid as long as the row exists: only burying ends a lease. A gap longer than a third of the lease makes us unsteady,
-- because then everybody else may have had the same gap (an outage, a promotion), and nobody may be buried for it.
-- Why SKIP LOCKED on jobs: one that is being finished right now needs no deadline, and waiting for it could deadlock with the finish.
CREATE OR REPLACE FUNCTION livewell.renew_worker(p_worker bigint, p_ids bigint[], p_fences bigint[], p_timeout_seconds float8[])
RETURNS TABLE (alive boolean, mark bigint, cancel bigint[], drain boolean)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_queues    text[];
    v_lease     interval;
    v_suspects  integer := 0;
    v_workers   integer;
    v_place     integer;
BEGIN
    PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT false, 0::bigint, '{}'::bigint[], false;
        RETURN;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.worker w
    SET renewed_at = v_now, expires_at = v_now + w.lease,
        steady_since = CASE WHEN v_now - w.renewed_at > w.lease / 3 THEN v_now ELSE w.steady_since END
    WHERE w.id = p_worker
    RETURNING w.queues, w.lease INTO v_queues, v_lease;

    IF cardinality(p_ids) > 0 THEN
        UPDATE livewell.job j SET deadline_at = v_now + t.seconds * interval '1 second'
        FROM unnest(p_ids, p_fences, p_timeout_seconds) AS t (id, fence, seconds)
        WHERE j.id = t.id AND j.fence = t.fence AND j.worker = p_worker
          AND j.id = ANY (ARRAY(SELECT l.id FROM livewell.job l WHERE l.id = ANY (p_ids) ORDER BY l.id FOR UPDATE SKIP LOCKED));
    END IF;

    -- Suspects need an empty worker. Of the workers, as many take a turn at draining as there are suspects, at most half; the turn moves on every lease.
    SELECT count(*) INTO v_suspects
    FROM unnest(v_queues) AS q (name)
    JOIN livewell.queue o ON o.name = q.name AND o.paused_at IS NULL     -- nobody drains for what may not run
    CROSS JOIN LATERAL (SELECT FROM livewell.job j WHERE j.queue = q.name AND j.state = 'ready' AND j.lost > 0 LIMIT 50) s;
    IF v_suspects > 0 THEN
        SELECT count(*), count(*) FILTER (WHERE w.id < p_worker) INTO v_workers, v_place FROM livewell.worker w WHERE w.queues && v_queues;
    END IF;

    RETURN QUERY
    SELECT true,
           -- The end of the newest block of fences. A sequence never used shows its first number, not the one before: the first claim may be in flight.
           (SELECT CASE WHEN s.is_called THEN s.last_value + 16383 ELSE 0 END FROM livewell.fence_seq s),
           ARRAY(SELECT j.fence FROM livewell.job j WHERE j.worker = p_worker AND j.cancel_requested),
           v_suspects > 0 AND (v_place + (extract(epoch FROM v_now) / extract(epoch FROM v_lease))::bigint) % v_workers < least(v_suspects, greatest(v_workers / 2, 1));
END
$$;
COMMENT ON FUNCTION livewell.renew_worker IS 'Renews a lease; answers whether it still exists, the newest fence, the fences to cancel, and whether to drain for suspects.';
REVOKE ALL ON FUNCTION livewell.renew_worker FROM PUBLIC;

-- ── queue/functions/report_progress.sql ──
-- Record progress of jobs we hold; what is not ours any more is silently left alone (the finish will say so).
--
-- Called by: worker, at most once a second for all its jobs together.
-- Index:     primary key; no indexed column changes, so the update stays on its page.
CREATE OR REPLACE FUNCTION livewell.report_progress(p_worker bigint, p_ids bigint[], p_fences bigint[], p_percents smallint[], p_notes text[])
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_n integer;
BEGIN
    UPDATE livewell.job j SET progress = least(greatest(p.percent, 0), 100), progress_note = left(p.note, 500)
    FROM unnest(p_ids, p_fences, p_percents, p_notes) AS p (id, fence, percent, note)
    WHERE j.id = p.id AND j.fence = p.fence AND j.worker = p_worker
      AND j.id = ANY (ARRAY(SELECT l.id FROM livewell.job l WHERE l.id = ANY (p_ids) ORDER BY l.id FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.report_progress IS 'Writes progress and note of held jobs; answers how many were still held.';
REVOKE ALL ON FUNCTION livewell.report_progress FROM PUBLIC;

-- ── queue/functions/reserve_job_ids.sql ──
-- Reserve blocks of 64 job ids; the caller owns first … first + 63 of each.
--
-- Called by: clients, once per 64 enqueues; outside any transaction, so a retry after an unknown commit can name the same id.
CREATE OR REPLACE FUNCTION livewell.reserve_job_ids(p_blocks integer)
RETURNS SETOF bigint
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT nextval('livewell.job_id_seq') FROM generate_series(1, least(greatest(p_blocks, 1), 2000))
$$;
COMMENT ON FUNCTION livewell.reserve_job_ids IS 'Gives the first id of each of n blocks of 64 job ids.';
REVOKE ALL ON FUNCTION livewell.reserve_job_ids FROM PUBLIC;

-- ── queue/functions/settle_jobs.sql ──
-- Decide what becomes of jobs that did not simply succeed. The caller has locked the rows and knows they are its to settle.
--
-- Called by: finish_jobs (owner), recover_jobs (lost, overdue), cancel_job.
-- Outcomes in:  retry      failed this time; delay_seconds NULL = the queue's back-off
--               refused    will never succeed: dead letter now (reason says why)
--               cancelled  ended because somebody asked
--               released   not the job's fault (deadlock, shutdown, no handler here): the attempt is given back
--               lost       its worker died: the attempt is given back, the loss is counted
-- No `id = ANY (p_ids)` beside the joins: with the statistics of an empty table the array was searched anew for every row (5,000 jobs: 4 s instead of 0.1 s).
-- A cancel that was asked for meanwhile wins over every way of running again.
CREATE OR REPLACE FUNCTION livewell.settle_jobs(p_ids bigint[], p_outcomes text[], p_reasons text[], p_errors text[], p_delays float8[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    WITH given AS (
        SELECT * FROM unnest(p_ids, p_outcomes, p_reasons, p_errors, p_delays) AS g (id, outcome, reason, error, delay_seconds)
    ), fate AS MATERIALIZED (
        SELECT j.id, g.outcome, left(g.error, 4000) AS error,
               CASE
                   WHEN g.outcome = 'cancelled' OR j.cancel_requested AND g.outcome <> 'refused' THEN 'cancelled'
                   WHEN g.outcome = 'refused' THEN 'dead'
                   WHEN g.outcome = 'retry' AND j.attempt >= j.max_attempts THEN 'dead'
                   WHEN g.outcome = 'lost' AND j.lost + 1 >= q.lost_max THEN 'dead'
                   ELSE 'again'
               END AS fate,
               CASE g.outcome WHEN 'refused' THEN coalesce(g.reason, 'refused') WHEN 'lost' THEN 'lost' ELSE 'attempts' END AS reason,
               CASE
                   WHEN g.delay_seconds IS NOT NULL THEN greatest(g.delay_seconds, 0)
                   -- base · 2ⁿ up to the cap, ± 20 % so that what failed together does not return together.
                   WHEN g.outcome = 'retry' THEN least(q.backoff_cap_seconds, q.backoff_base_seconds * 2 ^ least(j.attempt - 1, 30)) * (0.8 + 0.4 * random())
                   ELSE 0
               END * interval '1 second' AS delay
        FROM livewell.job j JOIN given g ON g.id = j.id JOIN livewell.queue q ON q.name = j.queue
    ), again AS (
        UPDATE livewell.job j
        SET state = CASE WHEN f.delay > interval '0' THEN 'delayed' ELSE 'ready' END::livewell.job_state,
            run_at = v_now + f.delay,
            -- A return to ready gets a new rank: its age counts from now, so it cannot overtake what waited meanwhile.
            rank = (extract(epoch FROM v_now + f.delay) * 1000)::bigint - j.priority * 60000,
            worker = NULL, started_at = NULL, deadline_at = NULL, progress = 0, progress_note = NULL,
            attempt = CASE WHEN f.outcome IN ('released', 'lost') THEN greatest(j.attempt - 1, 0) ELSE j.attempt END,
            lost = CASE WHEN f.outcome = 'lost' THEN j.lost + 1 ELSE j.lost END,
            last_error = coalesce(f.error, j.last_error)
        FROM fate f WHERE f.id = j.id AND f.fate = 'again'
    ), gone AS (
        DELETE FROM livewell.job j USING fate f
        WHERE f.id = j.id AND f.fate <> 'again'
        RETURNING j.*, f.fate, f.reason, f.error, f.outcome
    ), buried AS (
        INSERT INTO livewell.dead_job (id, batch_id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, unique_key, group_key, call_key, reason, payload, error, trace)
        SELECT g.id, g.batch_id, g.created_at, v_now, g.attempt, g.max_attempts, g.lost + (g.outcome = 'lost')::integer, g.priority, g.lane, g.queue, g.kind,
               g.unique_key, g.group_key, g.call_key, g.reason, g.payload, coalesce(g.error, g.last_error), g.trace
        FROM gone g WHERE g.fate = 'dead'
    )
    INSERT INTO livewell.job_history (id, fence, worker, created_at, started_at, finished_at, attempt, outcome, queue, kind, note)
    SELECT g.id, g.fence, g.worker, g.created_at, g.started_at, v_now, g.attempt, 'cancelled', g.queue, g.kind, g.error
    FROM gone g WHERE g.fate = 'cancelled';
END
$$;
COMMENT ON FUNCTION livewell.settle_jobs IS 'Sends locked jobs where their outcome leads: back to ready, to a later time, to the dead letters or to history as cancelled.';
REVOKE ALL ON FUNCTION livewell.settle_jobs FROM PUBLIC;

-- ── queue/functions/show_job.sql ──
-- Everything known about one job, wherever it is now: live, dead letter or history.
--
-- Called by: CLI `jobs show`, clients waiting for a result.
CREATE OR REPLACE FUNCTION livewell.show_job(p_id bigint)
RETURNS TABLE (id bigint, queue text, kind text, state text, lane smallint, priority smallint, attempt smallint, max_attempts smallint, lost smallint, progress smallint,
               progress_note text, worker text, run_at timestamptz, created_at timestamptz, started_at timestamptz, finished_at timestamptz, cancel_requested boolean,
               unique_key text, group_key text, reason text, error text, payload text)
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT j.id, j.queue, j.kind, j.state::text, j.lane, j.priority, j.attempt, j.max_attempts, j.lost, j.progress, j.progress_note,
           w.name, j.run_at, j.created_at, j.started_at, NULL::timestamptz, j.cancel_requested, j.unique_key, j.group_key, NULL::text, j.last_error, j.payload::text
    FROM livewell.job j LEFT JOIN livewell.worker w ON w.id = j.worker WHERE j.id = p_id
    UNION ALL
    SELECT d.id, d.queue, d.kind, 'failed', d.lane, d.priority, d.attempt, d.max_attempts, d.lost, NULL, NULL,
           NULL, NULL, d.created_at, NULL, d.died_at, false, d.unique_key, d.group_key, d.reason, d.error, d.payload::text
    FROM livewell.dead_job d WHERE d.id = p_id
    UNION ALL
    SELECT h.id, h.queue, h.kind, h.outcome::text, NULL, NULL, h.attempt, NULL, NULL, CASE WHEN h.outcome = 'succeeded' THEN 100 END, NULL,
           NULL, NULL, h.created_at, h.started_at, h.finished_at, h.outcome = 'cancelled', NULL, NULL, NULL, h.note, NULL
    FROM livewell.job_history h WHERE h.id = p_id
    LIMIT 1
$$;
COMMENT ON FUNCTION livewell.show_job IS 'One job with its state: delayed, held, ready, running, succeeded, cancelled or failed.';
REVOKE ALL ON FUNCTION livewell.show_job FROM PUBLIC;

-- ── queue/grants.sql ──
-- Who may do what with the queue. Re-applied when this file changes; skipped where roles cannot be created.
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.job, livewell.worker, livewell.dead_job, livewell.stat, livewell.tick TO livewell_worker;
GRANT SELECT, INSERT ON livewell.job_history TO livewell_worker;
GRANT SELECT, INSERT, UPDATE ON livewell.queue TO livewell_worker;
GRANT USAGE, SELECT ON SEQUENCE livewell.job_id_seq, livewell.fence_seq, livewell.worker_id_seq TO livewell_worker;
GRANT EXECUTE ON FUNCTION
    livewell.enqueue_jobs, livewell.reserve_job_ids, livewell.claim_jobs, livewell.finish_jobs, livewell.settle_jobs, livewell.exchange_jobs,
    livewell.register_worker, livewell.renew_worker, livewell.reconcile_jobs, livewell.release_worker, livewell.recover_jobs, livewell.promote_jobs,
    livewell.maintain, livewell.report_progress, livewell.cancel_job, livewell.declare_queue, livewell.add_stats, livewell.ensure_history_days,
    livewell.drop_history_day, livewell.prune_queue, livewell.show_job
    TO livewell_worker;

GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.job, livewell.dead_job TO livewell_operate;
GRANT SELECT, INSERT ON livewell.job_history TO livewell_operate;
GRANT SELECT, UPDATE ON livewell.queue TO livewell_operate;
GRANT SELECT ON livewell.worker, livewell.stat, livewell.tick TO livewell_operate;
GRANT EXECUTE ON FUNCTION
    livewell.list_jobs, livewell.show_job, livewell.list_queues, livewell.list_dead, livewell.list_workers, livewell.cancel_job, livewell.hasten_job,
    livewell.settle_jobs, livewell.redrive_dead, livewell.edit_dead, livewell.pause_queue
    TO livewell_operate;

GRANT SELECT ON livewell.job, livewell.job_history, livewell.dead_job, livewell.queue, livewell.worker, livewell.stat, livewell.tick TO livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.list_jobs, livewell.show_job, livewell.list_queues, livewell.list_dead, livewell.list_workers TO livewell_readonly;

-- ── function bodies ──
SET LOCAL check_function_bodies = on;
DO $validate$
BEGIN
    PERFORM CASE l.lanname WHEN 'plpgsql' THEN pg_catalog.plpgsql_validator(p.oid) ELSE pg_catalog.fmgr_sql_validator(p.oid) END
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell') AND l.lanname IN ('plpgsql', 'sql');
END
$validate$;

-- ── books ──
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('db', 1, 'base', 'bf7ff160497109b249227fd6afaeeb409343a85459084f4fa87e9b4e8a4ff76a', '0.1.0');
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'now', '7a8aeb0cd6ae12e15f7765bc62349ff908d688b522e673259f0da461652a3729', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'prune_warnings', '6c9ded5d6340bb9d38e22b2af06fdf4f32d3349afec4ac200d742da75cdb9d26', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'redact', 'db2deb7a76e0df97c2e0b96efc18b89401cc9bd7fc4e601aabbf9a90d559b4e2', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'warn', 'bd3138aecf783ec88220961a97e6e5088639511aeca085cfda001ac3d21ac2e4', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.grant_source (package, checksum) VALUES ('db', '0030c65ec82dc0f5767b655e625211f9803028dcf97f5f72238a69fbbe6dc758')
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('queue', 1, 'tables', '85afef0d6519b805072f92a2d722743eb8581b116bd1281569e460b09bd31340', '0.1.0');
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'refuse_transition', '85afef0d6519b805072f92a2d722743eb8581b116bd1281569e460b09bd31340', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'refuse_birth', '85afef0d6519b805072f92a2d722743eb8581b116bd1281569e460b09bd31340', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'add_stats', '6c169c505c8d1adb88878e032eeef73af6b771ebd4f8ccd6f95e5301bed094ad', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'cancel_job', '675ec42d7b01a7a0a8727f9e01ac7905923711d6d0139b8a4738124f8be3a308', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'claim_jobs', 'b1a58a43626e25fd6e154f8aae3ef5efdf42ae36132908ab06abbb87c4f7e5af', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'declare_queue', 'fb64482f8b76e3ed155333a548b63b8f5e0b926ed3cbc463e89cc1d4a2102a0f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'drop_history_day', '18e8e1129c4353cfa18c234d6dbd4795c773cf1487cfb132f7daf0ce5c50c9aa', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'edit_dead', '578ab2ffe051d5f696fd8b232e009e211adf4012e99761069012dfa0dcaa1d5b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'enqueue_jobs', 'd4bad4e12310cc1b854589774ecafe521b875719804bf86199e4ac6488b1cfc2', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'ensure_history_days', 'e9abc094b3c028d6bb280f003d65a5b52eb71554ad720a36a81f3f1922647079', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'exchange_jobs', 'cc9687343410976826d2421f69562a02c52d6178595909038351597155cc2bdb', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'finish_jobs', 'a64a4953691528de991833a793c187597145a69e064f91bd545ca807387edb80', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'hasten_job', '49789923481c257344d96e53ab4d144e72789751ff7fa6b460b2f81099f85398', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_dead', 'f9de0df9cb335c72eb76f98bc21fd1b401fc31032fd7e2dc1d91818a9b041ee5', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_jobs', '87504935c084fefb827949f545f8af3a110620239c1859de1de2e5a6bd30e6a4', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_queues', '736c5bcfc5df29c33cc2ff9157cd2d00b055dd383cb29b6f9930c2e0d17883a5', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_workers', 'b84b7a107dbded2b680a6218fa35d30d7d5b4d03c5287b25b8d8f34923765a08', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'maintain', 'cfd953800ae6d16c144240f1731ef1a1d5e2313669bb16b25b63f520fd1df9da', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'pause_queue', '2019a4eb0641baa70dc2462b49ee1d3185e353363a950fa7fca04960a67503b2', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'promote_jobs', '0a687938164213fa2c8101671bb1c0d26011dc4cf67d0d5f6bcd6a3f8d9482ac', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'prune_queue', '0a8847b6d971f8dd865e842fda1493923f6d44ee8d3fb9d4895b95e8bd03bc33', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'reconcile_jobs', 'c069bf4e1a316609750ab979136347e011d604612a5f816d7b833d49220a8e28', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'recover_jobs', 'e95c925524875a6d72aa496ec51176a287545e91356299decc429fa169b492fe', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'redrive_dead', 'c122f83df886f7b71498bc76258fd0b5876a46d95422cdb51edf9853c44bfb28', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'register_worker', '4176114846f20ac827f32a549fbcf5717da11ebd22a4129de1b722c2ef872941', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'release_worker', '56ddde6fe8ab63b76b48f172710607dde52d4ad20964b3010534494a277872ea', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'renew_worker', '00ee0ebaa53a69e13ec52e724d517a67672f57e9b4a1a1f1df935f8fe828b0ec', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'report_progress', '75c0945d801a5273f311c76cecfc3b37f935501c907fd06b71f6609cf0b80352', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'reserve_job_ids', 'bee0fdd5bfcfc9ce3b6d37d2e0903b5ab65ee719a0ce6796e4020ef590dac731', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'settle_jobs', '0a2d311029a3ae2fd05f29783c39f4c986e531b2b8aa8a07be61019290aec057', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'show_job', '40d9012a8eb8ea74cda5f36b58f06bec41dcccd4150700916bc4fc84ec511b89', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.grant_source (package, checksum) VALUES ('queue', '5cedc1277b6c18254a50476b538895029b9b84fa0c784337d6b81f812af347b3')
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
UPDATE livewell.function_source s SET installed_hash = live.hash FROM (
-- The functions of schema livewell and a hash of each definition; overloads of one name count as one.
SELECT
    p.proname::text AS name,
    encode(sha256(convert_to(
        string_agg(pg_catalog.pg_get_functiondef(p.oid), E'\n' ORDER BY pg_catalog.pg_get_function_identity_arguments(p.oid) COLLATE "C"), 'UTF8'
    )), 'hex') AS hash
FROM pg_catalog.pg_proc p
WHERE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell') AND p.prokind <> 'a'
GROUP BY p.proname
) AS live WHERE live.name = s.name AND s.installed_hash = '';
DELETE FROM livewell.function_source s
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'livewell' AND p.proname = s.name
);
INSERT INTO livewell.release (version, catalog) SELECT '0.1.0', jsonb_object_agg(live.object, live.definition) FROM (
-- What the tables of schema livewell look like: one row per object, key → definition.
--
-- Partition children are left out: they come and go. So are definitions that print differently from one Postgres to the next
-- (view bodies, and NOT NULL constraints, which are rows of pg_constraint from 18 on; the column says it already).
-- Runs with search_path = '', else names print differently for different users.
WITH table_ AS (
    SELECT c.oid, c.relname, c.relkind, c.reloptions, c.relrowsecurity, c.relforcerowsecurity, c.relpersistence
    FROM pg_catalog.pg_class c
    WHERE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell')
        AND c.relkind IN ('r', 'p', 'v', 'm')
        AND NOT c.relispartition
)
SELECT
    'table ' || t.relname AS object,
    concat_ws(
        ' ',
        CASE t.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' ELSE 'materialized view' END,
        CASE t.relpersistence WHEN 'u' THEN 'unlogged' END,
        CASE WHEN t.relrowsecurity THEN 'row security' END,
        CASE WHEN t.relforcerowsecurity THEN 'forced' END,
        'with (' || (SELECT string_agg(o, ', ' ORDER BY o COLLATE "C") FROM unnest(t.reloptions) AS o) || ')'
    ) AS definition
FROM table_ t
UNION ALL
SELECT
    'column ' || t.relname || '.' || a.attname,
    concat_ws(
        ' ',
        pg_catalog.format_type(a.atttypid, a.atttypmod),
        'collate ' || (SELECT co.collname FROM pg_catalog.pg_collation co, pg_catalog.pg_type ty
                       WHERE co.oid = a.attcollation AND ty.oid = a.atttypid AND a.attcollation <> ty.typcollation),
        CASE WHEN a.attnotnull THEN 'not null' END,
        CASE a.attidentity WHEN 'a' THEN 'identity always' WHEN 'd' THEN 'identity by default' END,
        CASE a.attgenerated WHEN '' THEN 'default ' ELSE 'generated ' END || pg_catalog.pg_get_expr(d.adbin, d.adrelid)
    )
FROM table_ t
JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
UNION ALL
SELECT 'constraint ' || t.relname || '.' || c.conname, pg_catalog.pg_get_constraintdef(c.oid)
FROM table_ t
JOIN pg_catalog.pg_constraint c ON c.conrelid = t.oid AND c.contype IN ('c', 'f', 'p', 'u', 'x')
UNION ALL
SELECT
    'index ' || t.relname || '.' || c.relname,
    pg_catalog.pg_get_indexdef(i.indexrelid) || CASE WHEN i.indisvalid THEN '' ELSE ' (invalid)' END
FROM table_ t
JOIN pg_catalog.pg_index i ON i.indrelid = t.oid
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
UNION ALL
SELECT 'trigger ' || t.relname || '.' || g.tgname, pg_catalog.pg_get_triggerdef(g.oid) || CASE g.tgenabled WHEN 'D' THEN ' (disabled)' ELSE '' END
FROM table_ t
JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal
UNION ALL
SELECT
    'policy ' || t.relname || '.' || p.polname,
    concat_ws(
        ' ', p.polcmd, CASE WHEN p.polpermissive THEN 'permissive' ELSE 'restrictive' END,
        (SELECT string_agg(r.rolname, ', ' ORDER BY r.rolname COLLATE "C") FROM pg_catalog.pg_roles r WHERE r.oid = ANY (p.polroles)),
        'using ' || pg_catalog.pg_get_expr(p.polqual, p.polrelid),
        'check ' || pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid)
    )
FROM table_ t
JOIN pg_catalog.pg_policy p ON p.polrelid = t.oid
UNION ALL
SELECT 'type ' || ty.typname, 'enum ' || (SELECT string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = ty.oid)
FROM pg_catalog.pg_type ty
WHERE ty.typnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell') AND ty.typtype = 'e'
UNION ALL
SELECT 'sequence ' || c.relname, concat_ws(' ', pg_catalog.format_type(s.seqtypid, NULL), 'increment', s.seqincrement, 'cache', s.seqcache)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_sequence s ON s.seqrelid = c.oid
WHERE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell')
) AS live
ON CONFLICT (only_row) DO UPDATE SET version = excluded.version, catalog = excluded.catalog, applied_at = excluded.applied_at;
