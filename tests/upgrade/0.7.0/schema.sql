-- Livewell 0.7.0: the whole schema, for an empty database. Run as a superuser, as one transaction: psql -1 -f FILE DATABASE

-- ── roles ──
-- Create our roles where they are missing; they belong to the whole cluster, so another database may
-- have made them.
--
-- The five below livewell_owner are groups of rights without login. Give one a login and a password,
-- or grant it to a login of yours; in that case set the two timeouts and jit on that login too, as
-- Postgres reads the settings of the role that logs in and of no other. jit: behind a transaction
-- pooler a session cannot turn it off itself.
-- What is already so is not touched: a DBA's own timeouts stay, and two databases migrated at once
-- do not collide on the shared catalogs.
DO $roles$
DECLARE
    v_role record;
    v_name text;
    v_value text;
BEGIN
    FOR v_role IN
        SELECT *
        FROM (VALUES
            ('livewell_owner', '10min', '1min', 'off'),
            ('livewell_api', '10s', '10s', 'off'),
            ('livewell_operate', '30s', '10s', 'off'),
            ('livewell_hub', '10s', '10s', 'off'),
            ('livewell_worker', '30s', '1min', 'off'),
            ('livewell_readonly', '1min', '1min', 'off')
        ) AS wanted (name, statement_timeout, idle_in_transaction_session_timeout, jit)
    LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = v_role.name) THEN
            BEGIN
                EXECUTE format(
                    'CREATE ROLE %I NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION',
                    v_role.name
                );
            EXCEPTION
                WHEN duplicate_object OR unique_violation THEN
                    NULL;       -- another database made it meanwhile
            END;
        END IF;
        FOR v_name, v_value IN
            SELECT w.key, w.value FROM jsonb_each_text(to_jsonb(v_role) - 'name') AS w
        LOOP
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
    IF EXISTS (
        SELECT FROM pg_catalog.pg_roles r
        WHERE r.rolname = 'livewell_owner' AND (r.rolsuper OR r.rolbypassrls)
    ) THEN
        RAISE EXCEPTION 'livewell_owner is a superuser or bypasses row security'
            USING HINT = 'ALTER ROLE livewell_owner NOSUPERUSER NOBYPASSRLS';
    END IF;
    -- Whoever is no superuser must be a member to hand objects to the owner; from 16 on creating a
    -- role gives ADMIN but neither SET nor INHERIT.
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

-- ── db/002_state.sql ──
-- What was last found out about the system by looking at a part of it. Never edited after release; changes are a new numbered file.

CREATE TABLE livewell.state_sample (
    name        text COLLATE "C" PRIMARY KEY,       -- of the part: queue, refresh
    at          timestamptz NOT NULL,
    value       jsonb       NOT NULL,
    CONSTRAINT state_sample_name_check CHECK (name ~ '^[a-z][a-z0-9_]{0,47}$')
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.state_sample IS 'Estimates of what would be dear to count, one row per part of the system, taken anew by whoever asks when they are ten seconds old (S6).';

-- ── db/003_trust.sql ──
-- 0.6.0: who did what by hand.
-- Never edited after release; changes are a new numbered file.

-- Who did what by hand (R25): one row for each act of an operator that changes how the system runs.
CREATE TABLE livewell.audit (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL,
    actor       text        NOT NULL,           -- key:<id>, jwt:<issuer>:<sub>, cli:<user>@<machine>, or python
    login       text        NOT NULL,           -- of the database, as it was opened
    action      text COLLATE "C" NOT NULL,      -- upstreams.resume
    subject     text        NOT NULL,           -- what it was done to
    arguments   jsonb       NOT NULL,
    answer      text        NOT NULL,           -- what became of it
    CONSTRAINT audit_pkey PRIMARY KEY (id),
    CONSTRAINT audit_bounds_check CHECK (octet_length(actor) <= 800 AND octet_length(action) <= 100 AND octet_length(subject) <= 800 AND pg_column_size(arguments) <= 4000 AND octet_length(answer) <= 800)
);
COMMENT ON TABLE livewell.audit IS 'What operators did, when and with which arguments; kept for audit_days.';
CREATE INDEX audit_at_idx ON livewell.audit (at);

-- ── db/functions/find_sample.sql ──
-- The last sample of a part of the system, and whether the caller is to take a new one.
--
-- Called by: state_queue, state_refresh. Whoever is told to take it calls keep_sample afterwards,
--            in the same transaction.
-- Of those who ask at once one is told to; the others are given the old one, which says how old it
-- is. The lock is one of the transaction: it works behind a pooler, and ends with the asker.
-- Older than three times the age, everybody is told to: whoever was told before is stuck. So is a
-- sample from the future: the clock was set back.
CREATE OR REPLACE FUNCTION livewell.find_sample(
    p_name text, p_now timestamptz, p_age_max interval DEFAULT interval '10 seconds'
)
RETURNS TABLE (at timestamptz, value jsonb, wanted boolean)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
BEGIN
    SELECT s.at, s.value INTO at, value FROM livewell.state_sample s WHERE s.name = p_name;
    wanted := CASE
        WHEN at IS NULL OR at > p_now OR at < p_now - 3 * p_age_max THEN true
        WHEN at < p_now - p_age_max
            THEN pg_catalog.pg_try_advisory_xact_lock(7601, pg_catalog.hashtext(p_name))
        ELSE false END;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.find_sample IS
    'The last sample of a part of the system, and whether the caller is to take a new one.';
REVOKE ALL ON FUNCTION livewell.find_sample FROM PUBLIC;

-- ── db/functions/grant_rights.sql ──
-- Grant what a matrix of rights says: one line per object, one column per role.
--
--     object                  api     hub     operate worker  readonly
--     table queue             -       -       rw      raw     r
--     table schedule          -       -       rw(asked_at,paused_at)  raw  r
--     function claim_jobs     -       -       -       X       -
--
-- Called by: grants.sql of each package, as the owner; nobody else may.
-- Letters:   those that Postgres prints: r SELECT, a INSERT, w UPDATE, d DELETE, X EXECUTE, U USAGE;
--            behind a letter, in parentheses, the columns it is for. A dash: nothing.
-- Objects:   table, sequence, function or schema; all but the schema are in schema livewell.
-- GRANT only adds. To take a right away, take it out of the matrix and write a REVOKE below it.
CREATE OR REPLACE FUNCTION livewell.grant_rights(p_matrix text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET lock_timeout = '100ms'
AS $$
DECLARE
    c_letters   CONSTANT jsonb := '{
        "r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE", "X": "EXECUTE", "U": "USAGE"
    }';
    v_roles     text[];
    v_line      text[];
    v_rights    text;
BEGIN
    FOR v_line IN
        SELECT regexp_split_to_array(trim(l.line), '\s+')
        FROM regexp_split_to_table(p_matrix, '\n') WITH ORDINALITY AS l (line, place)
        WHERE l.line !~ '^\s*(--.*)?$'
        ORDER BY l.place
    LOOP
        IF v_line[1] = 'object' THEN
            v_roles := v_line[2:];
            CONTINUE;
        END IF;
        IF cardinality(v_line) IS DISTINCT FROM cardinality(v_roles) + 2 THEN
            RAISE EXCEPTION 'rights of % %: a column for each of % is needed',
                v_line[1], v_line[2], v_roles
                USING ERRCODE = 'LW003';
        END IF;
        FOR v_place IN 1 .. cardinality(v_roles) LOOP
            CONTINUE WHEN v_line[v_place + 2] = '-';
            SELECT string_agg((c_letters ->> m.part[1]) || coalesce(m.part[2], ''), ', ')
            INTO v_rights
            FROM regexp_matches(v_line[v_place + 2], '([a-zA-Z])(\([^)]*\))?', 'g') AS m (part);
            EXECUTE format(
                'GRANT %s ON %s %s%s TO %I', v_rights, upper(v_line[1]),
                CASE WHEN v_line[1] <> 'schema' THEN 'livewell.' END, v_line[2],
                'livewell_' || v_roles[v_place]
            );
        END LOOP;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.grant_rights IS
    'Grants what a matrix of roles and objects says; adds only.';
REVOKE ALL ON FUNCTION livewell.grant_rights FROM PUBLIC;

-- ── db/functions/keep_sample.sql ──
-- Keep a sample for those who ask next; false when it cannot be kept: on a replica, in a
-- transaction that only reads, or for a role that may only look.
--
-- Called by: state_queue, state_refresh.
CREATE OR REPLACE FUNCTION livewell.keep_sample(p_name text, p_now timestamptz, p_value jsonb)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF pg_catalog.current_setting('transaction_read_only')::boolean
        OR NOT pg_catalog.has_table_privilege('livewell.state_sample', 'INSERT, UPDATE')
    THEN
        RETURN false;
    END IF;
    INSERT INTO livewell.state_sample AS s (name, at, value) VALUES (p_name, p_now, p_value)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at, value = excluded.value;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.keep_sample IS
    'Keeps a sample of a part of the system; false where nothing can be written.';
REVOKE ALL ON FUNCTION livewell.keep_sample FROM PUBLIC;

-- ── db/functions/list_audit.sql ──
-- What operators did, the newest first.
--
-- Called by: `livewell audit list`, GET /v1/audit. Index: audit_pkey. p_before: the id that the
--            page before ended with.
CREATE OR REPLACE FUNCTION livewell.list_audit(p_before bigint, p_limit integer)
RETURNS TABLE (
    id bigint, at timestamptz, actor text, login text, action text, subject text, arguments jsonb,
    answer text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT a.id, a.at, a.actor, a.login, a.action, a.subject, a.arguments, a.answer
    FROM livewell.audit a
    WHERE a.id < coalesce(p_before, 9223372036854775807)
    ORDER BY a.id DESC LIMIT least(p_limit, 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_audit IS 'A page of what operators did, the newest first.';
REVOKE ALL ON FUNCTION livewell.list_audit FROM PUBLIC;

-- ── db/functions/now.sql ──
-- The one clock of Livewell.
--
-- Called by: many functions; every function that needs an instant, once, into v_now, after it took
--            the locks it waits for.
-- Why not now(): that is the start of the transaction, which for a function that waited is long
-- ago. A test replaces this function to travel in time.
-- Why plpgsql: search_path = '' keeps SQL functions from being inlined, and then this is faster
-- (1.6 µs against 2.6 µs a call on 15, 0.9 against 1.6 on 18).
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
COMMENT ON FUNCTION livewell.now IS
    'The database clock; the only source of instants that are compared.';
REVOKE ALL ON FUNCTION livewell.now FROM PUBLIC;

-- ── db/functions/prune_audit.sql ──
-- Delete what operators did long ago, a bounded number per call.
--
-- Called by: housekeeping, until it answers 0. Index: audit_at_idx.
-- Why SECURITY DEFINER: nobody else may delete from this table, and ninety days are kept whatever
-- the caller says.
CREATE OR REPLACE FUNCTION livewell.prune_audit(p_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_before pg_catalog.timestamptz := livewell.now() - make_interval(days => greatest(p_days, 90));
    v_deleted pg_catalog.int4;
BEGIN
    DELETE FROM livewell.audit a
    WHERE a.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.audit o
            WHERE o.at < v_before
            ORDER BY o.at LIMIT greatest(least(p_limit, 10000), 0) FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    RETURN v_deleted;
END
$$;
COMMENT ON FUNCTION livewell.prune_audit IS
    'Deletes acts older than p_days, ninety at least; answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_audit FROM PUBLIC;

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
COMMENT ON FUNCTION livewell.prune_warnings IS
    'Deletes at most p_limit warnings older than p_days, and answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_warnings FROM PUBLIC;

-- ── db/functions/record_act.sql ──
-- Write down what an operator did, in the transaction that does it.
--
-- Called by: probe_breaker; functions and statements that mend (resume_upstream, close_breaker,
--            take_singleton …), with what became of it.
-- Why SECURITY DEFINER: whoever may act writes a line and can neither change nor delete one; and no
-- text is written that was not redacted and bounded.
-- Why pg_catalog.text: see warn(). session_user is the login, whoever this function runs as.
CREATE OR REPLACE FUNCTION livewell.record_act(
    p_actor text, p_action text, p_subject text, p_arguments jsonb, p_answer text
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now pg_catalog.timestamptz := livewell.now();
    v_arguments pg_catalog.text := livewell.redact(coalesce(p_arguments, '{}')::pg_catalog.text);
BEGIN
    IF octet_length(v_arguments) > 2000
        OR v_arguments <> coalesce(p_arguments, '{}')::pg_catalog.text
    THEN
        v_arguments := '{"hidden": true}';      -- too long, or something in it looked like a secret
    END IF;
    INSERT INTO livewell.audit (at, actor, login, action, subject, arguments, answer)
    VALUES (
        v_now, left(livewell.redact(p_actor), 200), session_user, left(p_action, 100),
        left(livewell.redact(p_subject), 200), v_arguments::pg_catalog.jsonb,
        left(livewell.redact(coalesce(p_answer, '')), 200)
    );
END
$$;
COMMENT ON FUNCTION livewell.record_act IS
    'Records who did what to what, with which arguments and which answer.';
REVOKE ALL ON FUNCTION livewell.record_act FROM PUBLIC;

-- ── db/functions/redact.sql ──
-- Mask what looks like a secret.
--
-- Called by: evaluate_rule, finish_run, observe_alerts, record_act, settle_attempt; warn(), and
--            whoever shows text that came from outside.
-- Types are qualified because warn() calls this with its owner's rights, see there.
-- Masks too much rather than too little: a path that is hidden costs a look at the log, a password
-- that is shown costs a rotation.
-- The text is cut to 8,000 characters before and 4,000 after, so a secret that straddles the first
-- cut does not survive the second.
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
    -- scheme://user:password@host, up to the last @, as people write unescaped @ and / into
    -- passwords
    v_text := regexp_replace(v_text, '(://[^\s/:@]*:)[^\s"''<>]*@', '\1***@', 'g');
    -- scheme://token@host
    v_text := regexp_replace(v_text, '://[^\s/@*]+@', '://***@', 'g');
    -- Authorization: Basic dXNlcg==
    v_text := regexp_replace(
        v_text, '(authorization["'']?\s*[=:]\s*["'']?)([a-z]+\s+)?[^\s"'',;]+', '\1***', 'gi'
    );
    v_text := regexp_replace(v_text, '\m(bearer\s+)[^\s"'',;]+', '\1***', 'gi');
    -- password=x, "api_key": "x", client_secret='a b', ?apikey=x&…
    v_text := regexp_replace(
        v_text,
        '((?:passw(?:or)?d|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|'
        'token|signature)[a-z0-9_-]*["'']?\s*[=:]\s*)'
        '(?:"(?:[^"\\]|\\.)*"?|''(?:[^''\\]|\\.)*''?|[^\s&,;"'')}\]]+)',
        '\1***', 'gi'
    );
    -- our own keys, and JSON web tokens
    v_text := regexp_replace(v_text, '\mlw_[a-z0-9_-]{8,}', 'lw_***', 'gi');
    v_text := regexp_replace(v_text, '\meyJ[a-z0-9_-]+\.[a-z0-9_-]+\.[a-z0-9_-]*', '***', 'gi');
    RETURN left(v_text, 4000);
END
$$;
COMMENT ON FUNCTION livewell.redact IS
    'Masks passwords, keys and tokens in a text, and bounds its length.';
REVOKE ALL ON FUNCTION livewell.redact FROM PUBLIC;

-- ── db/functions/state_database.sql ──
-- The state of the database itself: release, role of the server, connections, the oldest
-- transaction, and what was tolerated in the last two hours.
--
-- Called by: system_state. Exact; warnings are one row per kind and hour, the hundred most frequent
--            are named.
-- Index:     warning_hour_idx.
-- Other logins' transactions are seen only by a superuser or a member of pg_monitor; without that,
-- oldest_transaction_seconds is that of our own login.
CREATE OR REPLACE FUNCTION livewell.state_database()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object(
        'how', 'exact', 'release', (SELECT r.version FROM livewell.release r),
        'primary', NOT pg_catalog.pg_is_in_recovery(),
        'bytes', pg_catalog.pg_database_size(pg_catalog.current_database()),
        'connections', (
            SELECT count(*) FROM pg_catalog.pg_stat_activity a
            WHERE a.datname = pg_catalog.current_database()
        ),
        'oldest_transaction_seconds', (
            SELECT coalesce(max(extract(epoch FROM v_now - a.xact_start)), 0)::float8
            FROM pg_catalog.pg_stat_activity a
            WHERE a.datname = pg_catalog.current_database()
                AND a.pid <> pg_catalog.pg_backend_pid()
                AND a.backend_type = 'client backend'
        ),
        'warnings', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'place', w.place, 'what', w.what, 'this_hour', w.this_hour,
                        'last_hour', w.last_hour, 'last_at', w.last_at
                    ) ORDER BY w.n DESC,
                    w.place, w.what
                ),
                '[]'
            )
            FROM (
                SELECT g.place, g.what, sum(g.n) AS n, max(g.last_at) AS last_at,
                    coalesce(
                        sum(g.n) FILTER (WHERE g.hour = date_trunc('hour', v_now, 'UTC')), 0
                    ) AS this_hour,
                    coalesce(
                        sum(g.n) FILTER (WHERE g.hour < date_trunc('hour', v_now, 'UTC')), 0
                    ) AS last_hour
                FROM livewell.warning g
                WHERE g.hour >= date_trunc('hour', v_now, 'UTC') - interval '1 hour'
                GROUP BY g.place, g.what
                ORDER BY sum(g.n) DESC, g.place, g.what LIMIT 100
            ) w
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_database IS
    'Release, connections, oldest transaction and recent warnings, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_database FROM PUBLIC;

-- ── db/functions/table_pages.sql ──
-- How many pages a table has now, and which share of them (in percent) to look at so that about
-- p_pages are read.
--
-- Called by: sample_queue, sample_refresh. Asks the file system, not the statistics: right at once,
--            also after a million rows came in a minute.
CREATE OR REPLACE FUNCTION livewell.table_pages(p_table regclass, p_pages integer)
RETURNS TABLE (pages bigint, percent float8)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_variable
BEGIN
    pages :=
        pg_catalog.pg_relation_size(p_table) / pg_catalog.current_setting('block_size')::bigint;
    percent := least(100.0, 100.0 * p_pages / greatest(pages, 1));
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.table_pages IS
    'The size of a table in pages, and the share of it that is about p_pages.';
REVOKE ALL ON FUNCTION livewell.table_pages FROM PUBLIC;

-- ── db/functions/warn.sql ──
-- Count a failure we tolerate.
--
-- Called by: many functions; any function or process that goes on after something went wrong.
-- Index:     warning_hour_idx (hour, place, what)
-- Why SECURITY DEFINER: livewell_api has no table rights, and nobody shall write a text that was
-- not redacted and bounded.
-- Why pg_catalog.text: even with search_path = '' Postgres looks for types in pg_temp first, and a
-- caller's domain "text" would run its checks as the owner.
-- Why SKIP LOCKED: a warning must never make anyone wait. The row we count in stays locked until
-- our caller commits; who meets it meanwhile takes or adds another row.
-- Bounds:    texts 100, 200 and 500 characters; about 1,000 rows an hour, what comes after is
--            counted as '(more)'.
CREATE OR REPLACE FUNCTION livewell.warn(p_where text, p_what text, p_sample text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    c_rows_max CONSTANT integer := 1000;
    -- rows that '(more)' may have beyond that, for callers that hold one each
    c_spare CONSTANT integer := 100;
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
        -- A stricter isolation level would fail (40001) on a row that someone counted in since its
        -- snapshot: there we only add.
        IF current_setting('transaction_isolation') = 'read committed' THEN
            UPDATE livewell.warning w
            SET n = w.n + 1, last_at = greatest(w.last_at, v_now),
                sample = coalesce(v_sample, w.sample)
            WHERE w.id = (
                SELECT free.id FROM livewell.warning free
                WHERE free.hour = v_hour AND free.place = v_place AND free.what = v_what
                LIMIT 1 FOR UPDATE SKIP LOCKED
            );
            IF FOUND THEN
                RETURN;
            END IF;
        END IF;
        IF (
            SELECT count(*)
            FROM (SELECT FROM livewell.warning w WHERE w.hour = v_hour LIMIT v_room) AS taken
        ) < v_room
        THEN
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
COMMENT ON FUNCTION livewell.warn IS
    'Counts a tolerated failure: bounded, redacted, and never waits for another transaction.';
REVOKE ALL ON FUNCTION livewell.warn FROM PUBLIC;

-- ── db/grants.sql ──
-- Who may do what with the objects of db. Runs as livewell_owner, last in its package, again when
-- anything in the package changes. How to read the matrix: functions/grant_rights.sql.

-- EXECUTE for PUBLIC is a default of the whole database, so it cannot be revoked IN SCHEMA
-- livewell; the owner owns nothing else, so this is as narrow.
ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
REVOKE ALL ON SCHEMA livewell FROM PUBLIC;

SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

schema livewell                     U        U        U        U        U

-- tables. release, migration, function_source, grant_source: what a process reads to learn whether
-- this schema fits it. livewell_api has no table rights: a server checks with another of its pools.
-- state_sample: operators and workers keep samples for each other, whoever may only look does
-- without. audit: whoever may act writes a line, nobody changes one.
table audit                         -        -        r        r        r
table function_source               -        r        r        r        r
table grant_source                  -        r        r        r        r
table migration                     -        r        r        r        r
table release                       -        r        r        r        r
table state_sample                  -        -        raw      raw      r
table warning                       -        -        r        rwd      r

-- functions
function find_sample                -        -        X        X        X
function keep_sample                -        -        X        X        X
function list_audit                 -        -        X        X        X
function now                        X        X        X        X        X
function prune_audit                -        -        -        X        -
function prune_warnings             -        -        -        X        -
function record_act                 -        -        X        X        -
function state_database             -        -        X        X        X
function table_pages                -        -        X        X        X
function warn                       X        X        X        X        -
$matrix$);

-- ── limits/001_tables.sql ──
-- Limiters: how much of an outside resource may be used, and what has been used. One limiter per resource; rate, budget and breaker are kept per credential.
-- Never edited after release; changes are a new numbered file.

CREATE TABLE livewell.limiter (
    name                    text COLLATE "C" PRIMARY KEY,
    -- Rate: so many calls in any window of so many seconds, as the receiver sees it.
    rate_calls              integer,
    rate_seconds            float8,
    burst                   integer     NOT NULL DEFAULT 10,    -- calls that may go at once; beyond that they are paced
    reserve                 float8      NOT NULL DEFAULT 0.1,   -- share of the rate that only lane 0 may use
    permit_seconds          float8      NOT NULL DEFAULT 1,     -- how long after the claim was sent the call may still be made
    -- Budget: so many units in a rolling span, or in a day that begins at a time in a zone.
    budget_units            bigint,
    budget_unit             text COLLATE "C",
    budget_seconds          float8,
    budget_resets           time,
    budget_zone             text COLLATE "C",
    budget_stop             float8      NOT NULL DEFAULT 0.95,  -- share of the budget at which everything stops
    budget_background_stop  float8      NOT NULL DEFAULT 0.8,   -- and lane 1
    estimate_units          bigint      NOT NULL DEFAULT 1,     -- what a call of an unknown kind is taken to cost
    -- Concurrency, over all credentials.
    concurrency             integer,
    per_key                 integer,                            -- running at once for one group key, over all queues of the limiter
    -- Breaker: so many failures that are also such a share of the calls in so many seconds, or so many in a row.
    breaker_failures        integer,                            -- NULL: no breaker
    breaker_share           float8      NOT NULL DEFAULT 0.2,
    breaker_seconds         float8      NOT NULL DEFAULT 600,
    breaker_in_row          integer     NOT NULL DEFAULT 5,
    open_seconds            float8      NOT NULL DEFAULT 60,    -- doubling
    open_seconds_max        float8      NOT NULL DEFAULT 900,
    wall_seconds            float8      NOT NULL DEFAULT 21600, -- after the upstream said that its bandwidth is used up
    created_at              timestamptz NOT NULL,
    CONSTRAINT limiter_name_check       CHECK (name ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    CONSTRAINT limiter_rate_check       CHECK ((rate_calls IS NULL) = (rate_seconds IS NULL) AND rate_calls BETWEEN 1 AND 1000000 AND rate_seconds BETWEEN 0.1 AND 86400),
    CONSTRAINT limiter_burst_check      CHECK (burst BETWEEN 1 AND 1000000),
    CONSTRAINT limiter_reserve_check    CHECK (reserve >= 0 AND reserve < 1),
    CONSTRAINT limiter_permit_check     CHECK (permit_seconds > 0 AND permit_seconds <= 60),
    CONSTRAINT limiter_budget_check     CHECK ((budget_units IS NULL) = (budget_unit IS NULL) AND budget_units > 0 AND budget_unit IN ('bytes', 'calls', 'tokens')
                                               AND (budget_units IS NULL OR (budget_seconds IS NULL) <> (budget_resets IS NULL))
                                               AND (budget_resets IS NULL) = (budget_zone IS NULL) AND budget_seconds BETWEEN 3600 AND 34560000),
    CONSTRAINT limiter_stop_check       CHECK (budget_stop > 0 AND budget_stop <= 1 AND budget_background_stop > 0 AND budget_background_stop <= budget_stop),
    CONSTRAINT limiter_estimate_check   CHECK (estimate_units >= 0),
    CONSTRAINT limiter_concurrency_check CHECK (concurrency BETWEEN 1 AND 100000 AND per_key BETWEEN 1 AND 100000),
    CONSTRAINT limiter_breaker_check    CHECK (breaker_failures > 0 AND breaker_share >= 0 AND breaker_share <= 1 AND breaker_seconds BETWEEN 1 AND 86400 AND breaker_in_row > 0
                                               AND open_seconds > 0 AND open_seconds_max BETWEEN open_seconds AND 604800 AND wall_seconds BETWEEN 1 AND 604800)
);
COMMENT ON TABLE livewell.limiter IS 'The limits of one outside resource. Its row is the lock under which calls are granted and booked.';

-- No secret is stored: a credential is a name, and the application knows what it stands for.
CREATE TABLE livewell.limiter_credential (
    limiter         text COLLATE "C" NOT NULL REFERENCES livewell.limiter ON DELETE CASCADE,
    name            text COLLATE "C" NOT NULL,
    active          boolean     NOT NULL DEFAULT true,
    paced_to        timestamptz,                    -- the instant up to which calls are already spent, at the even pace of the rate
    quiet_until     timestamptz,                    -- the upstream asked for silence (Retry-After, nothing remaining)
    learnt_calls    integer,                        -- a lower rate than ours, learnt from answers
    breaker         text COLLATE "C" NOT NULL DEFAULT 'closed',
    open_until      timestamptz,
    opened          smallint    NOT NULL DEFAULT 0, -- times opened without a success between: doubles the pause
    opened_fence    bigint      NOT NULL DEFAULT 0, -- calls claimed under this fence or an older one say nothing about now
    probe_fence     bigint,                         -- the one call let through while half open; in flight iff a running job has this fence
    failures_in_row integer     NOT NULL DEFAULT 0,
    CONSTRAINT limiter_credential_pkey PRIMARY KEY (limiter, name),
    CONSTRAINT limiter_credential_name_check CHECK (octet_length(name) <= 200),
    CONSTRAINT limiter_credential_breaker_check CHECK (breaker IN ('closed', 'open', 'half_open') AND (breaker = 'closed') = (open_until IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.limiter_credential IS 'What is known about one credential of a limiter: pace, breaker, what the upstream said. One row with an empty name where there are no credentials.';

CREATE TABLE livewell.limiter_grant (
    limiter         text COLLATE "C" NOT NULL,
    credential      text COLLATE "C" NOT NULL,
    at              timestamptz NOT NULL,
    calls           integer     NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.limiter_grant IS 'Permits given, kept for one window: their sum is what the rate compares with.';
CREATE INDEX limiter_grant_idx ON livewell.limiter_grant (limiter, credential, at) INCLUDE (calls);

CREATE TABLE livewell.limiter_usage (
    limiter         text COLLATE "C" NOT NULL,
    credential      text COLLATE "C" NOT NULL,
    since           timestamptz NOT NULL,           -- the hour, or the reset within it
    units           bigint      NOT NULL,
    calls           bigint      NOT NULL,           -- claims that were settled; a call of fifty jobs is fifty
    CONSTRAINT limiter_usage_pkey PRIMARY KEY (limiter, credential, since)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.limiter_usage IS 'Units used and claims settled, by the hour.';

CREATE TABLE livewell.limiter_estimate (
    limiter         text COLLATE "C" NOT NULL REFERENCES livewell.limiter ON DELETE CASCADE,
    kind            text COLLATE "C" NOT NULL,
    units           float8      NOT NULL,
    CONSTRAINT limiter_estimate_pkey PRIMARY KEY (limiter, kind)
) WITH (fillfactor = 50);
COMMENT ON TABLE livewell.limiter_estimate IS 'What a job of a kind is expected to use: 0.9 old + 0.1 new per settled batch, the first measurement as it is (R16).';

CREATE TABLE livewell.limiter_calls (
    limiter         text COLLATE "C" NOT NULL,
    credential      text COLLATE "C" NOT NULL,
    since           timestamptz NOT NULL,           -- ten seconds each
    calls           integer     NOT NULL,
    failures        integer     NOT NULL,
    CONSTRAINT limiter_calls_pkey PRIMARY KEY (limiter, credential, since)
) WITH (fillfactor = 70);
COMMENT ON TABLE livewell.limiter_calls IS 'How calls ended, for the breaker.';

CREATE TABLE livewell.usage_settled (
    fence           bigint      NOT NULL,
    units           bigint      NOT NULL,
    at              timestamptz NOT NULL,
    CONSTRAINT usage_settled_pkey PRIMARY KEY (fence)
);
COMMENT ON TABLE livewell.usage_settled IS 'Which claims have been charged, kept a day: a late report books only the difference.';
CREATE INDEX usage_settled_at_idx ON livewell.usage_settled (at);

-- ── limits/002_trust.sql ──
-- 0.6.0: limits that hold as the upstream counts, and breakers that no single key can move.
-- Never edited after release; changes are a new numbered file.

-- A call counts from its grant until its answer is booked, and one window more (docs/adr/0009-calls-count-until-answered.md).
ALTER TABLE livewell.limiter
    -- how long after it was made a call that is not answered may still reach the upstream
    ADD COLUMN deadline_seconds float8 NOT NULL DEFAULT 30 CONSTRAINT limiter_deadline_check CHECK (deadline_seconds > 0 AND deadline_seconds <= 3600);
CREATE TABLE livewell.limiter_flight (
    limiter         text COLLATE "C" NOT NULL,
    credential      text COLLATE "C" NOT NULL,
    fence           bigint      NOT NULL,           -- of the first job of the call; the calls of one job have the same
    calls           integer     NOT NULL,
    at              timestamptz NOT NULL            -- the last instant at which it can reach the upstream: granted + permit + deadline
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.limiter_flight IS 'Calls that were granted and whose end is not booked yet. Each counts against the rate.';
CREATE INDEX limiter_flight_idx ON livewell.limiter_flight (limiter, credential, fence);
COMMENT ON TABLE livewell.limiter_grant IS 'Calls that have ended, at the instant by which they had surely reached the upstream: with those in flight they are what the rate compares with.';
-- Until now it held the instant of the grant. Nobody knows which of these calls were answered.
UPDATE livewell.limiter_grant g SET at = g.at + (l.permit_seconds + l.deadline_seconds) * interval '1 second' FROM livewell.limiter l WHERE l.name = g.limiter;
-- It gets a parameter with a default: calls as before still fit, and there must not be two that do. A new database does not have it yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.grant_calls(livewell.limiter, text, timestamptz, integer, bigint)') IS NOT NULL THEN
        DROP FUNCTION livewell.grant_calls(livewell.limiter, text, timestamptz, integer, bigint);
    END IF;
END
$drop$;

-- Breakers that no single key can move (R13, X10), and silences that are believed only up to a bound.
ALTER TABLE livewell.limiter
    -- a longer Retry-After is not believed: after so long one call asks again
    ADD COLUMN quiet_seconds_max float8 NOT NULL DEFAULT 900 CONSTRAINT limiter_quiet_check CHECK (quiet_seconds_max BETWEEN 1 AND 86400);
ALTER TABLE livewell.limiter_credential
    ADD COLUMN quiet_since          timestamptz,        -- when the silence began that lasts until quiet_until
    ADD COLUMN quiet_asked_seconds  float8,             -- how long the upstream asked for, however long it is believed
    ADD COLUMN opened_at            timestamptz,        -- when the breaker left closed; NULL while it is closed
    ADD COLUMN opened_reason        text COLLATE "C",   -- and why: the failure that was one too many
    ADD COLUMN opened_keys          integer,            -- and how many different keys had failed by then
    ADD COLUMN failing_until        timestamptz,        -- until then no key that is failing may be the probe
    ADD COLUMN free_at              timestamptz;        -- when calls last became possible again: closed, or another probe may go
-- Failures that are not about a key: no connection, no credential.
ALTER TABLE livewell.limiter_calls ADD COLUMN keyless integer NOT NULL DEFAULT 0;

-- A key is the group key of a job, or else its unique key, or else the job itself.
CREATE TABLE livewell.limiter_failing (
    limiter         text COLLATE "C" NOT NULL REFERENCES livewell.limiter ON DELETE CASCADE,
    key             text COLLATE "C" NOT NULL,
    credential      text COLLATE "C" NOT NULL,
    turned_at       timestamptz NOT NULL,           -- when it last turned from good to failing
    failed_at       timestamptz NOT NULL,
    failures        integer     NOT NULL,           -- in a row; 0: good again, and kept while the breaker's window remembers it
    counted         boolean     NOT NULL,           -- it had data: a key that never had says nothing about the upstream
    CONSTRAINT limiter_failing_pkey PRIMARY KEY (limiter, key, credential)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.limiter_failing IS 'Keys whose last call failed: each counts once to the breaker, and none of them is its probe while there is another.';
CREATE INDEX limiter_failing_turned_idx ON livewell.limiter_failing (limiter, credential, turned_at) WHERE counted;
CREATE INDEX limiter_failing_failed_idx ON livewell.limiter_failing (failed_at);

-- book_calls too gets parameters with defaults.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.book_calls(text, text, bigint[], text[], bigint)') IS NOT NULL THEN
        DROP FUNCTION livewell.book_calls(text, text, bigint[], text[], bigint);
    END IF;
END
$drop$;

-- ── limits/functions/book_calls.sql ──
-- Tell the breaker of a credential how calls ended: ok; outage (the upstream as a whole: no
-- connection, no credential accepted); upstream (its fault, as a task says); key (it failed for
-- this key, perhaps for it alone); data (it answered, but the key or value is bad); new (it failed
-- for a key that never had data); ours (says nothing about it); wall (bandwidth used up).
--
--     closed ──too many failures──▶ open ──time over──▶ half open: one probe ──ok, data──▶ closed
--       │                            ▲                    ▲  └──failed──▶ open, twice as long
--       │                            └──as many again─────┤  └──no verdict──▶ half open
--       └──too many keys failed, each on its own──────────┘
--
-- No verdict: ours, new, released, prober dead, or of a key that was failing already.
-- A failing key counts once, when it turns from good to failing (R13, X10): however often it is
-- tried, it says nothing new.
--
-- Steps:     mark_keys (whose failure is news), then book_probe if the breaker is not closed;
--            otherwise the calls are counted, and weigh_failures opens it if there are too many.
-- Called by: report_wall; charge_jobs, the limiter's row locked. p_fences, p_ends, p_causes: one
--            entry per call, a coalesced call counts once. p_keys, p_fared, p_calls: one per job,
--            see mark_keys; without them every failure is news.
-- p_newest: the newest fence handed out so far. A call claimed before the breaker opened says
--           nothing about the time after: its fence is at most opened_fence.
CREATE OR REPLACE FUNCTION livewell.book_calls(
    p_limiter text,
    p_credential text,
    p_fences bigint[],
    p_ends text[],
    p_newest bigint,
    p_causes text[] DEFAULT NULL,
    p_keys text[] DEFAULT NULL,
    p_fared text[] DEFAULT NULL,
    p_calls bigint[] DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_limiter   livewell.limiter;
    v_c         livewell.limiter_credential;
    v_news      bigint[];
    v_ends      text[] := p_ends;
    v_said      record;         -- what these calls say
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_limiter;
    SELECT * INTO v_c FROM livewell.limiter_credential c
    WHERE c.limiter = p_limiter AND c.name = p_credential;
    IF v_limiter.breaker_failures IS NULL OR v_c.name IS NULL THEN
        RETURN;
    END IF;
    IF p_keys IS NOT NULL THEN
        v_news := livewell.mark_keys(p_limiter, p_credential, p_keys, p_fared, p_calls, v_now);
        v_ends := ARRAY(
            SELECT CASE
                WHEN g.ended IN ('upstream', 'key') AND g.fence <> ALL (v_news) THEN 'known'
                ELSE g.ended
            END
            FROM unnest(p_fences, p_ends) WITH ORDINALITY AS g (fence, ended, place)
            ORDER BY g.place
        );
    END IF;
    IF v_c.breaker <> 'closed' THEN
        PERFORM livewell.book_probe(
            v_limiter, v_c, g.ended, coalesce(g.cause, g.ended), p_newest, v_now
        )
        FROM unnest(p_fences, v_ends, p_causes) AS g (fence, ended, cause)
        WHERE g.fence = v_c.probe_fence;
        RETURN;
    END IF;

    WITH said AS (
        SELECT g.fence, g.ended, g.cause,
            g.ended IN ('outage', 'upstream', 'key', 'wall') AS failed,
            g.ended IN ('ok', 'data') AS answered
        FROM unnest(p_fences, v_ends, p_causes) AS g (fence, ended, cause)
        WHERE g.fence > v_c.opened_fence AND g.ended NOT IN ('ours', 'new', 'known')
    )
    SELECT count(*) AS calls, count(*) FILTER (WHERE s.failed) AS failures,
        count(*) FILTER (WHERE s.ended IN ('outage', 'wall')) AS keyless,
        coalesce(bool_or(s.ended = 'wall'), false) AS wall,
        coalesce(bool_and(s.ended = 'key') FILTER (WHERE s.failed), false) AS keyed,
        -- In the order of the claims: how many failures since the last answer.
        count(*) FILTER (
            WHERE s.failed
                AND s.fence > coalesce((SELECT max(o.fence) FROM said o WHERE o.answered), 0)
        ) + CASE WHEN bool_or(s.answered) THEN 0 ELSE v_c.failures_in_row END AS in_row,
        (
            array_agg(
                coalesce(s.cause, s.ended) ORDER BY s.ended = 'wall' DESC, s.fence DESC
            ) FILTER (WHERE s.failed)
        )[1] AS cause
    INTO v_said FROM said s;
    IF v_said.calls = 0 THEN
        RETURN;
    END IF;
    IF v_said.in_row <> v_c.failures_in_row THEN
        UPDATE livewell.limiter_credential c
        SET failures_in_row = v_said.in_row
        WHERE c.limiter = p_limiter AND c.name = p_credential;
    END IF;
    INSERT INTO livewell.limiter_calls AS k (limiter, credential, since, calls, failures, keyless)
    VALUES (
        p_limiter, p_credential, to_timestamp(floor(extract(epoch FROM v_now) / 10) * 10),
        v_said.calls, v_said.failures, v_said.keyless
    )
    ON CONFLICT (limiter, credential, since)
    DO UPDATE SET calls = k.calls + excluded.calls, failures = k.failures + excluded.failures,
        keyless = k.keyless + excluded.keyless;
    IF v_said.failures > 0 THEN
        PERFORM livewell.weigh_failures(
            v_limiter, v_c, v_said.in_row, v_said.wall, v_said.keyed, p_keys IS NOT NULL,
            v_said.cause, p_newest, v_now
        );
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.book_calls IS
    'Moves the breaker of a credential by how its calls ended.';
REVOKE ALL ON FUNCTION livewell.book_calls FROM PUBLIC;

-- ── limits/functions/book_probe.sql ──
-- The probe of a breaker that is not closed has ended: close it, open it again, or let another key
-- probe.
--
-- Called by: book_calls, the limiter's row locked, with the words that it explains; and known: it
--            failed for a key that was failing already.
-- known: says nothing new, so keys that are not failing may probe at once; those that are wait, as
-- long as an opening lasts.
CREATE OR REPLACE FUNCTION livewell.book_probe(
    p_limiter livewell.limiter,
    p_c livewell.limiter_credential,
    p_ended text,
    p_cause text,
    p_newest bigint,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
BEGIN
    IF p_ended IN ('key', 'upstream') THEN
        UPDATE livewell.limiter_credential c
        SET opened_keys = c.opened_keys + 1
        WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
    END IF;
    IF p_ended IN ('ok', 'data') THEN
        UPDATE livewell.limiter_credential c
        SET breaker = 'closed', open_until = NULL, probe_fence = NULL, opened = 0,
            failures_in_row = 0, opened_fence = p_newest, free_at = p_now, failing_until = NULL,
            opened_at = NULL, opened_reason = NULL, opened_keys = NULL
        WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
        DELETE FROM livewell.limiter_calls k
        WHERE k.limiter = p_limiter.name AND k.credential = p_c.name;
    ELSIF p_ended = 'known' THEN
        UPDATE livewell.limiter_credential c
        SET probe_fence = NULL, free_at = p_now,
            opened = CASE WHEN c.opened = 0 THEN 0 ELSE least(c.opened + 1, 30) END,
            failing_until = p_now + least(
                p_limiter.open_seconds_max, p_limiter.open_seconds * 2 ^ c.opened
            ) * interval '1 second'
        WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
    ELSIF p_ended IN ('ours', 'new')
        OR p_ended = 'key'
            AND p_c.opened = 0
            AND p_c.failures_in_row + 1 < 2 * p_limiter.breaker_in_row
    THEN
        UPDATE livewell.limiter_credential c
        SET probe_fence = NULL, free_at = p_now,
            failures_in_row = c.failures_in_row + (p_ended = 'key')::integer
        WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
    ELSE
        PERFORM livewell.open_breaker(
            p_limiter, p_c, CASE p_ended WHEN 'wall' THEN 'wall' ELSE 'open' END, p_cause, p_newest,
            p_now
        );
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.book_probe IS
    'Moves a breaker that is not closed by how its probe ended.';
REVOKE ALL ON FUNCTION livewell.book_probe FROM PUBLIC;

-- ── limits/functions/book_usage.sql ──
-- Charge what claims have used, each fence once: a second report books only the difference to the
-- first. A guess never replaces what is already charged: recovery may come after the report of a
-- worker that was buried and is back.
--
-- Called by: book_call, charge_jobs; settle_jobs, finish_jobs (late reports), job_ended; the
--            limiter's row is locked by the caller.
-- One credential per call; p_kinds teach the estimates where p_measured says that the number was
-- measured and not taken from the estimate itself; 0 is a call that was not made.
CREATE OR REPLACE FUNCTION livewell.book_usage(
    p_limiter text,
    p_credential text,
    p_fences bigint[],
    p_units bigint[],
    p_kinds text[],
    p_measured boolean[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_limiter   livewell.limiter;
    v_since     timestamptz := date_trunc('hour', v_now, 'UTC');
    v_units     bigint;
    v_calls     bigint;
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_limiter;
    IF v_limiter.budget_resets IS NOT NULL THEN
        -- an hour in which the day changes has two rows
        v_since := greatest(v_since, livewell.budget_since(v_limiter, v_now));
    END IF;
    WITH before AS (
        SELECT s.fence, s.units FROM livewell.usage_settled s WHERE s.fence = ANY (p_fences)
    ),
    given AS (
        SELECT g.fence, greatest(g.units, 0) AS units
        FROM unnest(p_fences, p_units, p_measured) AS g (fence, units, measured)
        WHERE g.measured OR NOT EXISTS (SELECT FROM before b WHERE b.fence = g.fence)
    ),
    kept AS (
        INSERT INTO livewell.usage_settled AS s (fence, units, at)
        SELECT g.fence, g.units, v_now FROM given g
        ORDER BY g.fence
        ON CONFLICT (fence) DO UPDATE SET units = excluded.units
    )
    SELECT coalesce(sum(g.units - coalesce(b.units, 0)), 0), count(*) FILTER (WHERE b.fence IS NULL)
    INTO v_units, v_calls
    FROM given g
    LEFT JOIN before b ON b.fence = g.fence;

    INSERT INTO livewell.limiter_usage AS u (limiter, credential, since, units, calls)
    VALUES (p_limiter, p_credential, v_since, v_units, v_calls)
    ON CONFLICT (limiter, credential, since)
    DO UPDATE SET units = u.units + excluded.units, calls = u.calls + excluded.calls;

    INSERT INTO livewell.limiter_estimate AS e (limiter, kind, units)
    SELECT p_limiter, g.kind, avg(g.units)
    FROM unnest(p_units, p_kinds, p_measured) AS g (units, kind, measured)
    WHERE g.measured AND g.units > 0 AND v_limiter.budget_unit <> 'calls'
    GROUP BY g.kind
    ORDER BY g.kind
    ON CONFLICT (limiter, kind) DO UPDATE SET units = 0.9 * e.units + 0.1 * excluded.units;
END
$$;
COMMENT ON FUNCTION livewell.book_usage IS
    'Books used units once per fence and lets the estimates learn.';
REVOKE ALL ON FUNCTION livewell.book_usage FROM PUBLIC;

-- ── limits/functions/budget_since.sql ──
-- The instant since which usage counts against a limiter's budget: a rolling span ago, or the last
-- reset of the day in its zone.
--
-- Called by: plan_upstreams; limiter_room, limiter_budget, book_usage, list_limiters.
-- Rolling: whole hours, and one more, so that the oldest hour counts until all of it is past (721
--          hours for 30 days): never too little is counted.
-- The day: the latest reset that is not in the future. A reset time that a change to summer time
-- leaves out is taken as Postgres takes it, an hour later.
CREATE OR REPLACE FUNCTION livewell.budget_since(p_limiter livewell.limiter, p_now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $$
DECLARE
    v_local timestamp;
BEGIN
    IF p_limiter.budget_seconds IS NOT NULL THEN
        RETURN date_trunc('hour', p_now) - p_limiter.budget_seconds * interval '1 second';
    END IF;
    v_local :=
        date_trunc('day', p_now AT TIME ZONE p_limiter.budget_zone) + p_limiter.budget_resets;
    IF v_local AT TIME ZONE p_limiter.budget_zone > p_now THEN
        v_local := v_local - interval '1 day';
    END IF;
    RETURN v_local AT TIME ZONE p_limiter.budget_zone;
END
$$;
COMMENT ON FUNCTION livewell.budget_since IS 'Since when usage counts against the budget.';
REVOKE ALL ON FUNCTION livewell.budget_since FROM PUBLIC;

-- ── limits/functions/declare_limiter.sql ──
-- Make sure a limiter exists with these limits and credentials. What it has used, learnt and broken
-- stays as it is (G6).
--
-- Called by: apply_upstream; clients and workers at start. p_limits has the columns of
--            livewell.limiter; what it leaves out is NULL or the column's default.
-- Writes only when something differs: a fleet that starts together must not fight over one row.
-- Credentials that are no longer named become inactive, so what they used is not forgotten.
CREATE OR REPLACE FUNCTION livewell.declare_limiter(
    p_name text, p_limits jsonb, p_credentials text[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_wanted    livewell.limiter;
    v_is        livewell.limiter;
    v_names     text[] := CASE
        WHEN cardinality(p_credentials) > 0 THEN p_credentials
        ELSE ARRAY[''] END;
BEGIN
    INSERT INTO livewell.limiter (name, created_at) VALUES (p_name, v_now) ON CONFLICT DO NOTHING;
    SELECT * INTO v_is FROM livewell.limiter l WHERE l.name = p_name;
    SELECT * INTO v_wanted
    FROM jsonb_populate_record(
        NULL::livewell.limiter,
        jsonb_build_object(
            'burst', 10, 'reserve', 0.1, 'permit_seconds', 1, 'budget_stop', 0.95,
            'budget_background_stop', 0.8, 'estimate_units', 1, 'breaker_share', 0.2,
            'breaker_seconds', 600, 'breaker_in_row', 5, 'open_seconds', 60,
            'open_seconds_max', 900, 'wall_seconds', 21600, 'quiet_seconds_max', 900,
            'deadline_seconds', v_is.deadline_seconds
        ) || p_limits || jsonb_build_object('name', p_name, 'created_at', v_is.created_at)
    );
    IF v_wanted IS DISTINCT FROM v_is THEN
        PERFORM FROM livewell.limiter l WHERE l.name = p_name FOR UPDATE;
        DELETE FROM livewell.limiter_estimate e
        WHERE e.limiter = p_name AND v_wanted.budget_unit IS DISTINCT FROM v_is.budget_unit;
        UPDATE livewell.limiter l
        SET (
            rate_calls, rate_seconds, burst, reserve, permit_seconds, budget_units, budget_unit,
            budget_seconds, budget_resets, budget_zone, budget_stop, budget_background_stop,
            estimate_units, concurrency, per_key, breaker_failures, breaker_share, breaker_seconds,
            breaker_in_row, open_seconds, open_seconds_max, wall_seconds, quiet_seconds_max,
            deadline_seconds
        ) = (
            v_wanted.rate_calls, v_wanted.rate_seconds, v_wanted.burst, v_wanted.reserve,
            v_wanted.permit_seconds, v_wanted.budget_units, v_wanted.budget_unit,
            v_wanted.budget_seconds, v_wanted.budget_resets, v_wanted.budget_zone,
            v_wanted.budget_stop, v_wanted.budget_background_stop, v_wanted.estimate_units,
            v_wanted.concurrency, v_wanted.per_key, v_wanted.breaker_failures,
            v_wanted.breaker_share, v_wanted.breaker_seconds, v_wanted.breaker_in_row,
            v_wanted.open_seconds, v_wanted.open_seconds_max, v_wanted.wall_seconds,
            v_wanted.quiet_seconds_max, v_wanted.deadline_seconds
        )
        WHERE l.name = p_name;
    END IF;
    INSERT INTO livewell.limiter_credential (limiter, name)
    SELECT p_name, c FROM unnest(v_names) AS c
    ORDER BY c
    ON CONFLICT DO NOTHING;
    UPDATE livewell.limiter_credential c
    SET active = c.name = ANY (v_names)
    WHERE c.limiter = p_name AND c.active <> (c.name = ANY (v_names));
END
$$;
COMMENT ON FUNCTION livewell.declare_limiter IS
    'Creates a limiter or brings its limits and credentials up to date.';
REVOKE ALL ON FUNCTION livewell.declare_limiter FROM PUBLIC;

-- ── limits/functions/end_calls.sql ──
-- Calls are no longer in flight: from here on they count for one window, from now if they were
-- answered, and otherwise from the last instant at which they can reach the upstream.
--
-- Called by: charge_jobs (every way a job can end), take_permits, book_call; the limiter's row is
--            locked by the caller.
-- p_answered: an answer came, or no call was made. Otherwise (a deadline, a broken connection, a
--             worker that died) the request may still be on its way.
-- Index:      limiter_flight_idx, limiter_grant_idx.
-- Instants are rounded up to a thousandth of the window, and calls of one instant share a row: a
-- window has a thousand rows at most, whatever the rate, for a thousandth of its use.
CREATE OR REPLACE FUNCTION livewell.end_calls(
    p_limiter text, p_credential text, p_fences bigint[], p_answered boolean[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_step  interval;
BEGIN
    SELECT greatest(l.rate_seconds / 1000, 0.000001) * interval '1 second' INTO v_step
    FROM livewell.limiter l
    WHERE l.name = p_limiter AND l.rate_calls IS NOT NULL;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    WITH gone AS (
        DELETE FROM livewell.limiter_flight f
        USING unnest(p_fences, p_answered) AS g (fence, answered)
        WHERE f.limiter = p_limiter AND f.credential = p_credential AND f.fence = g.fence
        RETURNING f.calls, CASE WHEN g.answered THEN least(v_now, f.at) ELSE f.at END AS at
    ),
    ended AS (
        SELECT
            date_bin(v_step, g.at + v_step - interval '1 microsecond', timestamptz 'epoch') AS at,
            sum(g.calls)::integer AS calls
        FROM gone g
        GROUP BY 1
    ),
    merged AS (
        UPDATE livewell.limiter_grant g
        SET calls = g.calls + e.calls
        FROM ended e
        WHERE g.limiter = p_limiter AND g.credential = p_credential AND g.at = e.at
        RETURNING g.at
    )
    INSERT INTO livewell.limiter_grant (limiter, credential, at, calls)
    SELECT p_limiter, p_credential, e.at, e.calls FROM ended e
    WHERE NOT EXISTS (SELECT FROM merged m WHERE m.at = e.at);
END
$$;
COMMENT ON FUNCTION livewell.end_calls IS
    'Books the end of calls in flight: each counts against the rate for one window more.';
REVOKE ALL ON FUNCTION livewell.end_calls FROM PUBLIC;

-- ── limits/functions/grant_calls.sql ──
-- Write down that n calls were allowed under a credential: from now on they are in flight.
--
-- Called by: claim_limited, take_permits and take_call, in the transaction that hands out the
--            permits and under the limiter's row lock.
-- Index:     limiter_flight_idx, limiter_grant_idx.
-- p_fences:  the fences of the calls, which share p_calls evenly. end_calls finds them by these.
-- What no longer counts goes at the same time, so the log holds about one window.
CREATE OR REPLACE FUNCTION livewell.grant_calls(
    p_limiter livewell.limiter,
    p_credential text,
    p_now timestamptz,
    p_calls integer,
    p_probe_fence bigint,
    p_fences bigint[] DEFAULT '{0}'
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_counted   timestamptz := p_now - p_limiter.rate_seconds * interval '1 second';
BEGIN
    IF p_limiter.rate_calls IS NOT NULL THEN
        DELETE FROM livewell.limiter_grant g
        WHERE g.limiter = p_limiter.name AND g.credential = p_credential AND g.at <= v_counted;
        DELETE FROM livewell.limiter_flight f
        WHERE f.limiter = p_limiter.name AND f.credential = p_credential AND f.at <= v_counted;
        INSERT INTO livewell.limiter_flight (limiter, credential, fence, calls, at)
        SELECT p_limiter.name, p_credential, f, p_calls / cardinality(p_fences),
            p_now + (p_limiter.permit_seconds + p_limiter.deadline_seconds) * interval '1 second'
        FROM unnest(p_fences) AS f;
    END IF;
    UPDATE livewell.limiter_credential c
    SET
        paced_to = CASE
            WHEN p_limiter.rate_calls IS NULL THEN NULL
            ELSE greatest(c.paced_to, p_now) + p_calls * p_limiter.rate_seconds / least(
                p_limiter.rate_calls, c.learnt_calls
            ) * interval '1 second'
        END,
        breaker = CASE WHEN c.breaker = 'closed' THEN 'closed' ELSE 'half_open' END,
        probe_fence = CASE
            WHEN c.breaker = 'closed' THEN NULL
            ELSE coalesce(p_probe_fence, c.probe_fence)
        END
    WHERE c.limiter = p_limiter.name
        AND c.name = p_credential
        AND (p_limiter.rate_calls IS NOT NULL OR c.breaker <> 'closed');
END
$$;
COMMENT ON FUNCTION livewell.grant_calls IS
    'Records permits given under a credential, and which fence is the probe of a half-open '
    'breaker.';
REVOKE ALL ON FUNCTION livewell.grant_calls FROM PUBLIC;

-- ── limits/functions/limiter_budget.sql ──
-- How many units of its budget a credential has left, for each lane, how many calls that is, and in
-- how many seconds there will be more.
--
-- Called by: limiter_room, for each credential of a limiter with a budget.
-- p_reserved: units reserved by what runs now; p_estimate: the least that one more call would use.
-- Index:      limiter_usage_pkey. The planner settings are those of the caller.
-- Predictive: used + reserved + what is about to be fetched stays below the stop.
CREATE OR REPLACE FUNCTION livewell.limiter_budget(
    p_limiter livewell.limiter,
    p_credential text,
    p_now timestamptz,
    p_since timestamptz,
    p_reserved numeric,
    p_estimate float8,
    OUT units bigint,
    OUT background_units bigint,
    OUT calls integer,
    OUT background_calls integer,
    OUT wait_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_used  numeric;
BEGIN
    SELECT coalesce(sum(u.units), 0) + coalesce(p_reserved, 0) INTO v_used
    FROM livewell.limiter_usage u
    WHERE u.limiter = p_limiter.name AND u.credential = p_credential AND u.since >= p_since;
    units := greatest(
        floor(p_limiter.budget_units * p_limiter.budget_stop::numeric - v_used), 0
    );
    background_units := greatest(
        floor(p_limiter.budget_units * p_limiter.budget_background_stop::numeric - v_used), 0
    );
    calls := least(floor(units / greatest(p_estimate, 1)), 1000000);
    background_calls := least(floor(background_units / greatest(p_estimate, 1)), 1000000);
    IF background_calls > 0 THEN
        RETURN;
    END IF;
    wait_seconds := extract(
        epoch FROM CASE
            -- The next reset: the day in between has 23, 24 or 25 hours.
            WHEN p_limiter.budget_resets IS NOT NULL
                THEN livewell.budget_since(p_limiter, p_since + interval '36 hours') - p_now
            -- Rolling: room comes when the oldest hour with usage leaves the span.
            ELSE (
                SELECT min(u.since) FROM livewell.limiter_usage u
                WHERE u.limiter = p_limiter.name
                    AND u.credential = p_credential
                    AND u.since >= p_since
                    AND u.units > 0
            ) + (p_limiter.budget_seconds + 3600) * interval '1 second' - p_now
        END
    );
END
$$;
COMMENT ON FUNCTION livewell.limiter_budget IS
    'What the budget of a credential leaves, per lane, and otherwise for how long to wait.';
REVOKE ALL ON FUNCTION livewell.limiter_budget FROM PUBLIC;

-- ── limits/functions/limiter_rate.sql ──
-- How many calls a credential may make now under its rate, for each lane; and if lane 1 may make
-- none, in how many seconds to ask again.
--
-- Called by: limiter_room, for each credential that has a rate.
-- p_rate:    calls per window: as declared, or as few as the upstream was heard to allow.
-- Index:     limiter_grant_idx, limiter_flight_idx. The planner settings are those of the caller.
-- As the upstream counts it: a call counts from its grant until its answer is booked, and for one
-- window from then; without an answer, from the last instant at which it can arrive (end_calls).
-- So, for any window of the upstream and the call of it that was granted last: every other call of
-- it was in flight at that grant, or was booked after its arrival, which is less than a window
-- before. It was counted either way. However late requests and answers come, the sum is the limit
-- at most; no allowance for the way is needed. The price is use: W / (W + round trip).
-- On top of it calls are paced at rate/window with a burst, so that a viewer never waits out a
-- window that was spent in its first second.
CREATE OR REPLACE FUNCTION livewell.limiter_rate(
    p_limiter livewell.limiter,
    p_c livewell.limiter_credential,
    p_rate integer,
    p_now timestamptz,
    OUT calls integer,
    OUT background_calls integer,
    OUT wait_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    -- what is later counts
    v_counted   pg_catalog.timestamptz := p_now - p_limiter.rate_seconds * interval '1 second';
    v_pace      pg_catalog.float8 := p_limiter.rate_seconds / p_rate;       -- seconds per call
    v_burst     integer := least(p_limiter.burst, p_rate);
    -- The reserve never takes the last call of a window: a learnt limit may be as low as one.
    v_background integer := greatest(floor(p_rate * (1 - p_limiter.reserve)), 1);
    v_spent     bigint;
    v_free      integer;
    v_limit     integer;
    v_until     pg_catalog.timestamptz;
BEGIN
    SELECT
        coalesce(
            (
                SELECT sum(g.calls) FROM livewell.limiter_grant g
                WHERE g.limiter = p_limiter.name AND g.credential = p_c.name AND g.at > v_counted
            ),
            0
        ) + coalesce(
            (
                SELECT sum(f.calls) FROM livewell.limiter_flight f
                WHERE f.limiter = p_limiter.name AND f.credential = p_c.name AND f.at > v_counted
            ),
            0
        )
    INTO v_spent;
    -- paced_to runs ahead of now by what is spent; it may be ahead by the burst.
    v_free := floor(
        v_burst - greatest(extract(epoch FROM p_c.paced_to - p_now), 0) / v_pace + 1e-6
    );
    calls := greatest(least(p_rate - v_spent, coalesce(v_free, v_burst)), 0);
    background_calls := greatest(least(v_background - v_spent, calls), 0);
    IF background_calls > 0 THEN
        RETURN;
    END IF;
    -- When enough calls no longer count for one more, if the window is full; and when the pace has
    -- caught up. What is in flight may be answered now, and not sooner.
    v_limit := CASE WHEN calls = 0 THEN p_rate ELSE v_background END;
    SELECT o.at INTO v_until
    FROM (
        SELECT x.at, sum(x.calls) OVER (ORDER BY x.at) AS gone
        FROM (
            SELECT g.at, g.calls FROM livewell.limiter_grant g
            WHERE g.limiter = p_limiter.name AND g.credential = p_c.name AND g.at > v_counted
            UNION ALL
            SELECT least(f.at, p_now), f.calls FROM livewell.limiter_flight f
            WHERE f.limiter = p_limiter.name AND f.credential = p_c.name AND f.at > v_counted
        ) x
    ) o
    WHERE v_spent >= v_limit AND o.gone > v_spent - v_limit
    ORDER BY o.at LIMIT 1;
    wait_seconds := greatest(
        extract(epoch FROM v_until - v_counted),
        extract(epoch FROM p_c.paced_to - p_now) - (v_burst - 1) * v_pace,
        0.005
    );
END
$$;
COMMENT ON FUNCTION livewell.limiter_rate IS
    'What the rate of a credential allows now, per lane, and otherwise for how long to wait.';
REVOKE ALL ON FUNCTION livewell.limiter_rate FROM PUBLIC;

-- ── limits/functions/limiter_room.sql ──
-- How many calls each credential of a limiter may make now, for each lane; if none, why not and in
-- how many seconds to ask again.
--
-- Called by: credential_room, take_call; measure_room, permit_room (queue), with the limiter's row
--            locked by the caller in an earlier statement; why_limited and list_limiters without.
-- p_reserved: units reserved by what runs now, per credential, as {"name": units}; p_estimate: the
--             least that one more call would use; p_probing: credentials whose probe is in flight.
-- Index:      limiter_grant_idx, limiter_flight_idx.
-- The rate is limiter_rate's, the budget limiter_budget's: both say how they count.
CREATE OR REPLACE FUNCTION livewell.limiter_room(
    p_limiter livewell.limiter,
    p_now timestamptz,
    p_reserved jsonb,
    p_estimate float8,
    p_probing text[]
)
RETURNS TABLE (
    credential text, calls integer, background_calls integer, units bigint, background_units bigint,
    probe boolean, wait_seconds float8, reason text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_variable
DECLARE
    v_since     pg_catalog.timestamptz;
    v_c         livewell.limiter_credential;
    -- in queue: it knows the workers
    v_restart   pg_catalog.float8 := livewell.restart_wait(p_limiter.name, p_now);
    v_rate      integer;
    v_left      record;
BEGIN
    IF p_limiter.budget_units IS NOT NULL THEN
        v_since := livewell.budget_since(p_limiter, p_now);
    END IF;
    FOR v_c IN
        SELECT * FROM livewell.limiter_credential c
        WHERE c.limiter = p_limiter.name AND c.active
        ORDER BY c.name
    LOOP
        credential := v_c.name;
        calls := 0;
        background_calls := 0;
        units := NULL;
        background_units := NULL;
        probe := false;
        wait_seconds := NULL;
        reason := NULL;

        IF v_c.breaker <> 'closed' AND v_c.open_until > p_now THEN
            reason := 'breaker';
            wait_seconds := extract(epoch FROM v_c.open_until - p_now);
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF v_c.quiet_until > p_now THEN
            reason := 'upstream';
            wait_seconds := extract(epoch FROM v_c.quiet_until - p_now);
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF v_restart IS NOT NULL THEN
            reason := 'restart';
            wait_seconds := v_restart;
            RETURN NEXT;
            CONTINUE;
        END IF;
        probe := v_c.breaker <> 'closed';
        IF probe AND v_c.name = ANY (p_probing) THEN
            reason := 'probe';
            RETURN NEXT;
            CONTINUE;
        END IF;

        calls := 1000000;
        background_calls := 1000000;
        v_rate := least(p_limiter.rate_calls, v_c.learnt_calls);
        IF v_rate IS NOT NULL THEN
            v_left := livewell.limiter_rate(p_limiter, v_c, v_rate, p_now);
            calls := v_left.calls;
            background_calls := v_left.background_calls;
            IF background_calls = 0 THEN
                reason := 'rate';
                wait_seconds := v_left.wait_seconds;
            END IF;
        END IF;
        IF p_limiter.budget_units IS NOT NULL THEN
            v_left := livewell.limiter_budget(
                p_limiter, v_c.name, p_now, v_since, (p_reserved ->> v_c.name)::numeric, p_estimate
            );
            units := v_left.units;
            background_units := v_left.background_units;
            IF v_left.calls < calls OR v_left.background_calls < background_calls THEN
                calls := least(calls, v_left.calls);
                background_calls := least(background_calls, v_left.background_calls, calls);
                IF calls = 0 OR background_calls = 0 AND reason IS NULL THEN
                    reason := 'budget';
                    wait_seconds := v_left.wait_seconds;
                END IF;
            END IF;
        END IF;
        IF probe THEN
            calls := least(calls, 1);
            background_calls := least(background_calls, 1);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.limiter_room IS
    'What each credential allows now, per lane, and otherwise why not and for how long.';
REVOKE ALL ON FUNCTION livewell.limiter_room FROM PUBLIC;

-- ── limits/functions/limiter_trouble.sql ──
-- What is wrong with a limiter: each credential in use whose calls are stopped by its breaker or by
-- the upstream's wish, the one that is free first before the others.
--
-- Called by: rule_upstream_silent; key_trouble, why_job's readers, doctor. Index:
--            limiter_credential_pkey, limiter_calls_pkey.
-- calls, calls_failed: of the last ten minutes. cause, cause_keys: the failure that opened the
-- breaker, and how many different keys had failed by then.
CREATE OR REPLACE FUNCTION livewell.limiter_trouble(p_limiter text, p_now timestamptz)
RETURNS TABLE (
    credential text, breaker text, open_until timestamptz, opened integer, quiet_until timestamptz,
    calls bigint, calls_failed bigint, opened_at timestamptz, cause text, cause_keys integer,
    quiet_since timestamptz, quiet_asked_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.name, c.breaker, c.open_until, c.opened::integer,
        CASE WHEN c.quiet_until > p_now THEN c.quiet_until END, coalesce(k.calls, 0),
        coalesce(k.failures, 0), c.opened_at, c.opened_reason, c.opened_keys,
        CASE WHEN c.quiet_until > p_now THEN c.quiet_since END,
        CASE WHEN c.quiet_until > p_now THEN c.quiet_asked_seconds END
    FROM livewell.limiter_credential c
    CROSS JOIN LATERAL (
        SELECT sum(x.calls) AS calls, sum(x.failures) AS failures FROM livewell.limiter_calls x
        WHERE x.limiter = p_limiter
            AND x.credential = c.name
            AND x.since > p_now - interval '10 minutes'
    ) k
    WHERE c.limiter = p_limiter AND c.active AND (c.breaker <> 'closed' OR c.quiet_until > p_now)
    ORDER BY greatest(c.open_until, c.quiet_until), c.name;
END
$$;
COMMENT ON FUNCTION livewell.limiter_trouble IS
    'Credentials whose calls are stopped by the breaker or by the upstream, with how calls went.';
REVOKE ALL ON FUNCTION livewell.limiter_trouble FROM PUBLIC;

-- ── limits/functions/mark_keys.sql ──
-- Keep which keys of a credential are failing, and say for which of these calls a key has just
-- turned from good to failing: only that is news for a breaker.
--
-- Called by: book_calls, the limiter's row locked. One entry per job: its key, how the key fared
--            (ok; upstream, key: failed; new: failed, and never had data; anything else says
--            nothing), and its call.
-- Index:     limiter_failing_pkey.
CREATE OR REPLACE FUNCTION livewell.mark_keys(
    p_limiter text,
    p_credential text,
    p_keys text[],
    p_fared text[],
    p_calls bigint[],
    p_now timestamptz
)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_good  text[] := ARRAY(
        SELECT g.key FROM unnest(p_keys, p_fared) AS g (key, fared) WHERE g.fared = 'ok'
    );
    v_news  bigint[];
BEGIN
    UPDATE livewell.limiter_failing f
    SET failures = 0
    WHERE f.limiter = p_limiter
        AND f.key = ANY (v_good)
        AND f.credential = p_credential
        AND f.failures > 0;
    WITH failed AS (
        SELECT g.key, min(g.call) AS call, bool_or(g.fared <> 'new') AS counted
        FROM unnest(p_keys, p_fared, p_calls) AS g (key, fared, call)
        WHERE g.fared IN ('upstream', 'key', 'new')
        GROUP BY g.key
    ),
    known AS (
        SELECT f.key FROM livewell.limiter_failing f
        WHERE f.limiter = p_limiter
            AND f.key = ANY (ARRAY(SELECT x.key FROM failed x))
            AND f.credential = p_credential
            AND f.failures > 0
    ),
    kept AS (
        INSERT INTO livewell.limiter_failing AS f (
            limiter, key, credential, turned_at, failed_at, failures, counted
        )
        SELECT p_limiter, x.key, p_credential, p_now, p_now, 1, x.counted FROM failed x
        ORDER BY x.key
        ON CONFLICT (limiter, key, credential)
        DO UPDATE SET failures = f.failures + 1, failed_at = excluded.failed_at,
            counted = f.counted OR excluded.counted,
            turned_at = CASE WHEN f.failures = 0 THEN excluded.turned_at ELSE f.turned_at END
    )
    SELECT array_agg(DISTINCT x.call) INTO v_news FROM failed x
    WHERE x.counted AND x.key NOT IN (SELECT k.key FROM known k);
    RETURN coalesce(v_news, '{}');
END
$$;
COMMENT ON FUNCTION livewell.mark_keys IS
    'Marks keys as failing or good again; answers the calls whose key has just turned.';
REVOKE ALL ON FUNCTION livewell.mark_keys FROM PUBLIC;

-- ── limits/functions/observe_limiter.sql ──
-- What the upstream itself said about its limit (G5). It can only tighten: never more is allowed
-- than was declared.
--
-- Called by: Limiter.observe, from response headers. NULL: it did not say.
-- remaining = 0 or a Retry-After means silence until then; a limit lower than ours is kept until a
-- higher one is seen.
-- A silence is believed for quiet_seconds_max at most: one absurd answer must not stop everybody
-- for a day (X10). If more was asked for, one call asks again after that: the breaker, if there is
-- one, waits half open for its probe. What was asked for is kept, so that a person can be told.
CREATE OR REPLACE FUNCTION livewell.observe_limiter(
    p_limiter text,
    p_credential text,
    p_limit integer,
    p_remaining integer,
    p_reset_seconds float8,
    p_retry_seconds float8
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_limiter   livewell.limiter;
    v_quiet     float8;
    v_until     timestamptz;
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_limiter FOR NO KEY UPDATE;
    v_now := livewell.now();
    -- NULL if it asked for none
    v_quiet := greatest(
        p_retry_seconds,
        CASE WHEN p_remaining <= 0 THEN coalesce(p_reset_seconds, v_limiter.rate_seconds) END
    );
    v_until := v_now + CASE WHEN v_quiet > 0 THEN least(v_quiet, v_limiter.quiet_seconds_max) END
        * interval '1 second';
    UPDATE livewell.limiter_credential c
    SET
        quiet_since = CASE
            WHEN v_until > v_now AND coalesce(c.quiet_until <= v_now, true) THEN v_now
            ELSE c.quiet_since
        END,
        quiet_asked_seconds = CASE
            WHEN v_until > v_now AND coalesce(v_until >= c.quiet_until, true) THEN v_quiet
            ELSE c.quiet_asked_seconds
        END,
        quiet_until = CASE
            WHEN v_until > v_now THEN greatest(c.quiet_until, v_until)
            ELSE c.quiet_until
        END,
        learnt_calls = CASE
            WHEN p_limit IS NULL THEN c.learnt_calls
            WHEN p_limit < v_limiter.rate_calls THEN greatest(p_limit, 1)
        END
    WHERE c.limiter = p_limiter AND c.name = p_credential;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE livewell.limiter_credential c
    SET breaker = 'half_open', open_until = v_now, opened_at = v_now, opened_reason = 'silence',
        opened_keys = 0, failing_until = NULL, free_at = v_until
    WHERE c.limiter = p_limiter
        AND c.name = p_credential
        AND c.breaker = 'closed'
        AND v_limiter.breaker_failures IS NOT NULL
        AND v_quiet > v_limiter.quiet_seconds_max;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.observe_limiter IS
    'Takes in a limit, a remainder or a Retry-After that the upstream stated; false when there is '
    'no such credential.';
REVOKE ALL ON FUNCTION livewell.observe_limiter FROM PUBLIC;

-- ── limits/functions/open_breaker.sql ──
-- Open a breaker, or let it doubt: half open at once, so that the next call is a probe.
--
-- Called by: weigh_failures, book_probe, the limiter's row locked. p_how: open (each time twice as
--            long), wall (hours), doubt.
-- Keys that are failing wait a little longer than the others for the probe: whoever is not failing
-- comes first, also if the due check has yet to queue it.
CREATE OR REPLACE FUNCTION livewell.open_breaker(
    p_limiter livewell.limiter,
    p_c livewell.limiter_credential,
    p_how text,
    p_cause text,
    p_newest bigint,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    -- seconds that keys that are not failing have to themselves
    c_first     CONSTANT float8 := 15;
    v_until     timestamptz := p_now + CASE p_how
        WHEN 'doubt' THEN 0
        WHEN 'wall' THEN p_limiter.wall_seconds
        ELSE least(p_limiter.open_seconds_max, p_limiter.open_seconds * 2 ^ p_c.opened)
    END * interval '1 second';
BEGIN
    UPDATE livewell.limiter_credential c
    SET breaker = CASE p_how WHEN 'doubt' THEN 'half_open' ELSE 'open' END, open_until = v_until,
        opened = CASE p_how WHEN 'doubt' THEN 0 ELSE least(c.opened + 1, 30) END,
        probe_fence = NULL, opened_fence = p_newest, opened_reason = left(p_cause, 40),
        free_at = v_until,
        failures_in_row = CASE p_how
            WHEN 'doubt' THEN greatest(c.failures_in_row, p_limiter.breaker_in_row)
            ELSE c.failures_in_row
        END,
        failing_until = v_until + least(c_first, p_limiter.open_seconds) * interval '1 second'
    WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
END
$$;
COMMENT ON FUNCTION livewell.open_breaker IS
    'Opens the breaker of a credential, or puts it in doubt.';
REVOKE ALL ON FUNCTION livewell.open_breaker FROM PUBLIC;

-- ── limits/functions/prune_limits.sql ──
-- Forget usage that no budget looks at any more, and yesterday's settled fences; a bounded page per
-- call.
--
-- Called by: worker, hourly, until it answers 0.
-- Index:     usage_settled_at_idx, limiter_failing_failed_idx, primary keys.
CREATE OR REPLACE FUNCTION livewell.prune_limits(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_n     integer;
    v_all   integer := 0;
BEGIN
    DELETE FROM livewell.usage_settled s
    WHERE s.fence = ANY (
        ARRAY(
            SELECT o.fence FROM livewell.usage_settled o
            WHERE o.at < v_now - interval '1 day'
            ORDER BY o.at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_all = ROW_COUNT;
    DELETE FROM livewell.limiter_usage u WHERE u.since < v_now - interval '400 days';
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;
    DELETE FROM livewell.limiter_calls k WHERE k.since < v_now - interval '1 day';
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;
    -- A key that goes on failing is tried every six hours at least, and no breaker looks back
    -- longer than a day.
    DELETE FROM livewell.limiter_failing f
    WHERE (f.limiter, f.key, f.credential) IN (
        SELECT o.limiter, o.key, o.credential FROM livewell.limiter_failing o
        WHERE o.failed_at < v_now - interval '1 day'
        ORDER BY o.failed_at LIMIT p_limit
    );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;
    DELETE FROM livewell.limiter_grant g WHERE g.at < v_now - interval '2 days';
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;
    DELETE FROM livewell.limiter_flight f WHERE f.at < v_now - interval '2 days';
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_all + v_n;
END
$$;
COMMENT ON FUNCTION livewell.prune_limits IS
    'Removes limiter records that nothing looks at any more; answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_limits FROM PUBLIC;

-- ── limits/functions/weigh_failures.sql ──
-- Open the breaker of a credential if too many of its calls failed: at the bandwidth wall, so many
-- in a row, or so many and such a share of the calls in the window.
--
-- Called by: book_calls, the limiter's row locked, after it has counted calls of which some failed.
--            p_in_row: failures since the last answer; p_wall: one met the wall; p_keyed: each
--            failed for its key, perhaps for it alone; p_by_key: keys are known.
-- Keys that fail each on its own open nothing by themselves: they raise a doubt, half open with
-- opened = 0, and the probe, a key that is not failing, decides. Only as many again in a row open
-- the breaker: a handful of bad keys that happen to come one after the other stops nobody.
-- Index:     limiter_calls_pkey, limiter_failing_turned_idx. The planner settings are those of
--            book_calls.
CREATE OR REPLACE FUNCTION livewell.weigh_failures(
    p_limiter livewell.limiter,
    p_c livewell.limiter_credential,
    p_in_row bigint,
    p_wall boolean,
    p_keyed boolean,
    p_by_key boolean,
    p_cause text,
    p_newest bigint,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_window    record;         -- calls, failures and keyless, of the window
    v_keys      integer;        -- different keys that turned in the window
BEGIN
    SELECT sum(k.calls) AS calls, sum(k.failures) AS failures, sum(k.keyless) AS keyless
    INTO v_window FROM livewell.limiter_calls k
    WHERE k.limiter = p_limiter.name
        AND k.credential = p_c.name
        AND k.since > p_now - p_limiter.breaker_seconds * interval '1 second';
    SELECT count(*) INTO v_keys FROM livewell.limiter_failing f
    WHERE f.limiter = p_limiter.name
        AND f.credential = p_c.name
        AND f.counted
        AND f.turned_at > p_now - p_limiter.breaker_seconds * interval '1 second';
    IF p_wall
        OR p_in_row >= p_limiter.breaker_in_row
        OR v_window.failures >= p_limiter.breaker_failures
            AND v_window.failures >= p_limiter.breaker_share * v_window.calls
            -- One key that fails at every other call is still one key.
            AND (NOT p_by_key OR v_window.keyless + v_keys >= p_limiter.breaker_failures)
    THEN
        UPDATE livewell.limiter_credential c
        SET opened_at = p_now, opened_keys = v_keys
        WHERE c.limiter = p_limiter.name AND c.name = p_c.name;
        PERFORM livewell.open_breaker(
            p_limiter, p_c,
            CASE WHEN p_wall THEN 'wall' WHEN p_keyed THEN 'doubt' ELSE 'open' END,
            p_cause, p_newest, p_now
        );
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.weigh_failures IS
    'Opens the breaker of a credential, or makes it half open, if too many calls failed.';
REVOKE ALL ON FUNCTION livewell.weigh_failures FROM PUBLIC;

-- ── limits/grants.sql ──
-- Who may do what with limiters.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables. Operators write too: their cancel settles a job, and with it what the job had reserved.
table limiter                       -        -        rw       raw      r
table limiter_calls                 -        -        rawd     rawd     r
table limiter_credential            -        -        rw       raw      r
table limiter_estimate              -        -        rawd     rawd     r
table limiter_failing               -        -        rawd     rawd     r
table limiter_flight                -        -        rawd     rawd     r
table limiter_grant                 -        -        rawd     rawd     r
table limiter_usage                 -        -        rawd     rawd     r
table usage_settled                 -        -        rawd     rawd     r

-- functions
function book_calls                 -        -        X        X        -
function book_probe                 -        -        X        X        -
function book_usage                 -        -        X        X        -
function budget_since               -        -        X        X        X
function declare_limiter            -        -        -        X        -
function end_calls                  -        -        X        X        -
function grant_calls                -        -        -        X        -
function limiter_budget             -        -        X        X        X
function limiter_rate               -        -        X        X        X
function limiter_room               -        -        X        X        X
function limiter_trouble            -        -        X        X        X
function mark_keys                  -        -        X        X        -
function observe_limiter            -        -        -        X        -
function open_breaker               -        -        X        X        -
function prune_limits               -        -        -        X        -
function weigh_failures             -        -        X        X        -
$matrix$);

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

-- ── queue/002_limits.sql ──
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

-- ── queue/003_failover.sql ──
-- What a failover must not undo. Never edited after release; changes are a new numbered file.

-- Every promotion of a standby begins a new timeline. What the old primary handed out last may never have reached the standby: numbers are raised before anything is handed out again (functions/raise_fences.sql).
-- Kept in sequences, so that whoever hands out numbers looks without reading a table.
CREATE SEQUENCE livewell.timeline_seq AS bigint;
COMMENT ON SEQUENCE livewell.timeline_seq IS 'Its last value is the timeline of the server when numbers were last known to be right.';
SELECT setval('livewell.timeline_seq', ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint);
CREATE SEQUENCE livewell.failover_seq AS bigint;
COMMENT ON SEQUENCE livewell.failover_seq IS 'How often numbers were raised after a failover.';

-- ── queue/004_trust.sql ──
-- 0.6.0: checks in the table itself, and what is kept of failures.
-- Never edited after release; changes are a new numbered file.

-- The traceback of a job's last failure, redacted and at most 8 kB as the worker sends it; NULL where there is none, or where a worker before 0.6.0 reported the failure.
ALTER TABLE livewell.job ADD COLUMN last_traceback text;
ALTER TABLE livewell.dead_job ADD COLUMN traceback text;

-- Workers claim with the credentials they have: "limiter credential" for each that this one cannot use.
ALTER TABLE livewell.worker ADD COLUMN lacks text[] COLLATE "C" NOT NULL DEFAULT '{}';

-- These get parameters with defaults: calls as before still fit, and there must not be two that do. A new database does not have them yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.settle_jobs(bigint[], text[], text[], text[], float8[], bigint[], text[])') IS NOT NULL THEN
        DROP FUNCTION livewell.settle_jobs(bigint[], text[], text[], text[], float8[], bigint[], text[]);
        DROP FUNCTION livewell.charge_jobs(text[], text[], bigint[], text[], bigint[], bigint[], text[]);
        DROP FUNCTION livewell.limited_candidates(text, boolean, integer, bigint[]);
        DROP FUNCTION livewell.claim_limited(bigint, text, integer, boolean, text[], integer[]);
    END IF;
END
$drop$;
-- Contract 8: lanes, priorities and payloads are bounded by the table itself, whoever inserts (docs/adr/0015-checks-in-the-job-table.md).
-- One expression, its cheapest part first: Postgres prepares each CHECK anew in every statement and evaluates it at every claim. Text is at most six times the binary form, so small payloads are
-- never turned into text to be measured.
ALTER TABLE livewell.job ADD CONSTRAINT job_birth_check CHECK (
    lane BETWEEN 0 AND 1 AND priority BETWEEN -100 AND 100 AND (pg_column_size(payload) <= 40000 OR octet_length(payload::text) <= 262144)) NOT VALID;
-- Rows that older releases accepted are brought within the bounds: a claim updates the row, and one that the table refuses would stop every claim of its queue.
WITH large AS (
    DELETE FROM livewell.job WHERE pg_column_size(payload) > 40000 AND octet_length(payload::text) > 262144 RETURNING *
)
INSERT INTO livewell.dead_job (id, batch_id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, unique_key, group_key, call_key, reason, payload, error, trace, units)
SELECT id, batch_id, created_at, now(), attempt, max_attempts, lost, priority, lane, queue, kind, unique_key, group_key, call_key, 'payload', payload, 'the payload has more than 262144 bytes', trace, units
FROM large;
UPDATE livewell.job SET lane = least(greatest(lane, 0), 1), priority = least(greatest(priority, -100), 100)
WHERE lane NOT BETWEEN 0 AND 1 OR priority NOT BETWEEN -100 AND 100;
-- The table has live jobs only, and the statements above have just read them all.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE livewell.job VALIDATE CONSTRAINT job_birth_check;

-- Q1: of the changes between live states, these are all that there are: delayed → ready; ready → running, held; held → ready, delayed; running → ready, delayed. Only the condition is evaluated per row.
DROP TRIGGER job_transition ON livewell.job;
CREATE TRIGGER job_transition AFTER UPDATE OF state, worker, fence ON livewell.job
    FOR EACH ROW WHEN (
        NEW.state = 'running' AND OLD.state <> 'ready' OR NEW.state = 'delayed' AND OLD.state = 'ready' OR NEW.state = 'held' AND OLD.state IN ('running', 'delayed')
    ) EXECUTE FUNCTION livewell.refuse_transition();
-- take_permits gets a parameter with a default: calls as before still fit, and there must not be two that do. A new database does not have it yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.take_permits(bigint, bigint, bigint, integer)') IS NOT NULL THEN
        DROP FUNCTION livewell.take_permits(bigint, bigint, bigint, integer);
    END IF;
END
$drop$;

-- When numbers were last raised after a failover, in milliseconds since 1970: a promoted standby may have been started long before (functions/server_started.sql).
CREATE SEQUENCE livewell.promoted_seq AS bigint;
COMMENT ON SEQUENCE livewell.promoted_seq IS 'Its last value is when a failover was last noticed, in milliseconds since 1970.';

-- ── queue/005_claim_steps.sql ──
-- 0.7.0: what the steps of claim_limited hand to each other.
-- Never edited after release; changes are a new numbered file.

-- measure_room → pick_limited: what may start now.
CREATE TYPE livewell.limited_room AS (
    calls               integer,        -- calls that may start; at most 0: none, and the reason
    background_calls    integer,        -- for both lanes together when lane 1 asks; NULL: as calls
    jobs                integer,        -- jobs, of however many calls
    running             text[],         -- queues that share the limiter
    credential          text,           -- the credential with the most room; NULL: no limiter
    probe               boolean,        -- its breaker is half open: one call tries
    failing_until       timestamptz,    -- keys that are failing may be that call from then on
    units               bigint,         -- what the budget leaves; NULL: no budget
    background_units    bigint,         -- and what lane 1 may use of it
    estimates           jsonb,          -- units that a call is expected to use, by kind
    reason              text,           -- what stands in the way, if anything does
    wait_seconds        float8          -- until it is worth asking again, if that is known
);
COMMENT ON TYPE livewell.limited_room IS 'What a limited queue may start now.';
REVOKE ALL ON TYPE livewell.limited_room FROM PUBLIC;

-- pick_limited → claim_limited: what is taken. The three arrays have one entry per job.
CREATE TYPE livewell.limited_pick AS (
    jobs                bigint[],
    calls               bigint[],       -- the place, in jobs, of the first job of its call
    units               bigint[],       -- what it is expected to use
    n_calls             integer,
    reason              text,           -- why there are no jobs
    wait_seconds        float8
);
COMMENT ON TYPE livewell.limited_pick IS 'The jobs that a claim of a limited queue takes.';
REVOKE ALL ON TYPE livewell.limited_pick FROM PUBLIC;

-- ── queue/functions/batch/create_batch.sql ──
-- Open a batch. Its id and that of its follow-up come from reserve_job_ids, so a repeated call is
-- the same batch.
--
-- Called by: clients, in the caller's transaction or not.
CREATE OR REPLACE FUNCTION livewell.create_batch(
    p_id bigint,
    p_follow_id bigint DEFAULT NULL,
    p_follow_when text DEFAULT NULL,
    p_follow jsonb DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    IF p_follow IS NOT NULL
        AND NOT EXISTS (SELECT FROM livewell.queue q WHERE q.name = p_follow ->> 'queue')
    THEN
        RAISE EXCEPTION 'queue "%" is not declared', coalesce(p_follow ->> 'queue', '(none)')
            USING ERRCODE = 'LW002';
    END IF;
    INSERT INTO livewell.batch (id, created_at, follow_id, follow_when, follow)
    VALUES (p_id, v_now, p_follow_id, p_follow_when, p_follow)
    ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION livewell.create_batch IS
    'Opens a batch, with the follow-up job to enqueue when all its jobs have ended.';
REVOKE ALL ON FUNCTION livewell.create_batch FROM PUBLIC;

-- ── queue/functions/batch/end_batches.sql ──
-- End batches of which nothing remains, and enqueue their follow-up.
--
-- Called by: job_ended and seal_batch; the batch rows are locked by the caller, in the order of
--            their ids.
-- The follow-up is a job as enqueue_jobs takes it, with an id reserved when the batch was made: it
-- can only be enqueued once.
CREATE OR REPLACE FUNCTION livewell.end_batches(p_ids bigint[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_follow    jsonb;
BEGIN
    WITH ended AS (
        UPDATE livewell.batch b
        SET ended_at = v_now
        WHERE b.id = ANY (p_ids)
            AND b.remaining = 0
            AND b.ended_at IS NULL
            -- A follow-up that wants every job to have succeeded waits: a dead letter may be
            -- redriven.
            AND (b.follow IS NULL OR b.follow_when = 'done' OR b.failed + b.cancelled = 0)
        RETURNING b.follow_id, b.follow
    )
    SELECT jsonb_agg(e.follow || jsonb_build_object('id', e.follow_id)) INTO v_follow FROM ended e
    WHERE e.follow IS NOT NULL;
    IF v_follow IS NOT NULL THEN
        PERFORM livewell.enqueue_jobs(v_follow);
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.end_batches IS
    'Marks finished batches as ended and enqueues their follow-up jobs.';
REVOKE ALL ON FUNCTION livewell.end_batches FROM PUBLIC;

-- ── queue/functions/batch/seal_batch.sql ──
-- Say that nothing more will be added to a batch; from now on it knows how many of its jobs remain.
--
-- Called by: clients.
-- FOR UPDATE waits for every transaction that is adding to it (they hold FOR KEY SHARE), and only a
-- new statement then sees all its jobs.
CREATE OR REPLACE FUNCTION livewell.seal_batch(p_id bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now timestamptz;
BEGIN
    PERFORM FROM livewell.batch b WHERE b.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.batch b
    SET sealed_at = v_now, remaining = (SELECT count(*) FROM livewell.job j WHERE j.batch_id = p_id)
    WHERE b.id = p_id AND b.sealed_at IS NULL;
    PERFORM livewell.end_batches(ARRAY[p_id]);
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.seal_batch IS
    'Closes a batch to further jobs; false when there is none with that id.';
REVOKE ALL ON FUNCTION livewell.seal_batch FROM PUBLIC;

-- ── queue/functions/batch/show_batch.sql ──
-- How far a batch is.
--
-- Called by: clients, CLI `jobs batch`.
-- Index:     job_batch_idx, for a batch that is not sealed yet.
CREATE OR REPLACE FUNCTION livewell.show_batch(p_id bigint)
RETURNS TABLE (
    id bigint, state text, total bigint, remaining bigint, succeeded bigint, failed bigint,
    cancelled bigint, created_at timestamptz, sealed_at timestamptz, ended_at timestamptz,
    follow_id bigint
)
LANGUAGE sql
SET search_path = ''
SET enable_seqscan = off
AS $$
    SELECT b.id,
        CASE
            WHEN b.sealed_at IS NULL THEN 'open'
            WHEN b.remaining > 0 THEN 'running'
            WHEN b.ended_at IS NULL THEN 'failed'
            ELSE 'ended'
        END,
        l.n + b.succeeded + b.failed + b.cancelled, l.n, b.succeeded, b.failed, b.cancelled,
        b.created_at, b.sealed_at, b.ended_at, b.follow_id
    FROM livewell.batch b
    CROSS JOIN LATERAL (
        SELECT coalesce(
            b.remaining, (SELECT count(*) FROM livewell.job j WHERE j.batch_id = b.id)
        ) AS n
    ) l
    WHERE b.id = p_id
$$;
COMMENT ON FUNCTION livewell.show_batch IS
    'One batch: open, running, failed (its follow-up waits for a redrive) or ended, with counts.';
REVOKE ALL ON FUNCTION livewell.show_batch FROM PUBLIC;

-- ── queue/functions/claim/claim_jobs.sql ──
-- Take up to p_limit ready jobs from the given queues, in the given order of queues; within a queue
-- by lane, then rank, then id.
--
-- Called by: worker/claim_ahead.py (an idle worker; a busy one through exchange_jobs), inline
--            worker.
-- Index:     job_ready_idx, job_suspect_idx; the UPDATE goes by primary key.
-- Answer:    one row per job, `claimed`; their order is not promised, sort by (lane, rank, id).
--            Before them at most one row of news, with all other columns NULL: `buried` (the worker
--            has no lease); with empty marks also `slow` (looking took long: column rank holds
--            microseconds) or `paused` (nothing was found, and some queue is paused). Workers of
--            0.6.0 read these rows, so their shape stays.
-- Steps:     the lease; lock_suspect; the queues in turn (lock_behind_marks, if there are marks);
--            the UPDATE. Only what is seldom done has a function of its own: a call costs every
--            claim.
-- Limited queues are passed over, whoever asks: claim_limited is the only way to their jobs.
-- p_mark_ranks, p_mark_ids: marks, two for each queue (lane 0, lane 1): see lock_behind_marks.
-- Why the lease is locked first, in its own statement: burying takes FOR UPDATE on the worker row,
-- so a claim either commits before its worker is buried (and recovery sees its jobs) or finds the
-- row gone. FOR KEY SHARE, because FOR SHARE would block our own heartbeat.
-- Why the rows are locked first and updated by id: UPDATE … FROM (SELECT … LIMIT) ran 30-40 times
-- slower with the statistics of an empty table.
-- Fences: one block of numbers per claim, one number of it per job (a nextval per job took 1.5 of
--         17 µs). width_bucket is a binary search.
CREATE OR REPLACE FUNCTION livewell.claim_jobs(
    p_worker bigint,
    p_queues text[],
    p_limit integer,
    p_empty boolean DEFAULT false,
    p_mark_ranks bigint[] DEFAULT NULL,
    p_mark_ids bigint[] DEFAULT NULL
)
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
    v_news      livewell.claimed_job;
    v_queue     text;
    v_took      interval;
    v_fence     bigint;
    v_now       timestamptz;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'jobs are claimed on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;
    IF NOT FOUND THEN
        v_news.answer := 'buried';
        RETURN NEXT v_news;
        RETURN;
    END IF;
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    v_now := livewell.now();

    -- A job that was held by a worker when it died runs alone, so if it is the killer it takes
    -- nobody with it.
    IF p_empty
        AND v_limit > 0
        AND EXISTS (
            SELECT FROM livewell.job s
            WHERE s.queue = ANY (p_queues) AND s.state = 'ready' AND s.lost > 0
        )
    THEN
        v_found := livewell.lock_suspect(p_queues);
    END IF;

    IF cardinality(v_found) = 0 THEN
        FOR v_place IN 1 .. cardinality(p_queues) LOOP
            EXIT WHEN cardinality(v_found) >= v_limit;
            v_queue := p_queues[v_place];
            IF coalesce(cardinality(p_mark_ranks), 0) = 0 THEN
                -- Both lanes and the queue's own row in one statement: what an idle worker pays for
                -- is statements.
                v_found := v_found || ARRAY(
                    SELECT r.id FROM livewell.job r
                    WHERE r.queue = v_queue
                        AND r.state = 'ready'
                        AND r.lost = 0
                        AND EXISTS (
                            SELECT FROM livewell.queue q
                            WHERE q.name = v_queue
                                AND q.paused_at IS NULL
                                AND q.concurrency IS NULL
                                AND q.group_limit IS NULL
                                AND q.limiter IS NULL
                        )
                    ORDER BY r.lane, r.rank, r.id LIMIT v_limit - cardinality(v_found)
                    FOR UPDATE SKIP LOCKED
                );
                CONTINUE;
            END IF;
            v_found := v_found || livewell.lock_behind_marks(
                v_queue, v_limit - cardinality(v_found),
                p_mark_ranks[2 * v_place - 1:2 * v_place], p_mark_ids[2 * v_place - 1:2 * v_place]
            );
        END LOOP;
        v_took := livewell.now() - v_now;
        IF p_mark_ranks = '{}'
            AND v_took > interval '5 ms' + cardinality(v_found) * interval '20 microseconds'
        THEN
            v_news.answer := 'slow';
            v_news.rank := extract(epoch FROM v_took) * 1000000;
            RETURN NEXT v_news;
        ELSIF p_mark_ranks = '{}'
            AND cardinality(v_found) = 0
            AND EXISTS (
                SELECT FROM livewell.queue q
                WHERE q.name = ANY (p_queues) AND q.paused_at IS NOT NULL
            )
        THEN
            -- Quick, because a paused queue is not looked at: that says nothing about how long a
            -- look takes.
            v_news.answer := 'paused';
            RETURN NEXT v_news;
        END IF;
    END IF;

    IF cardinality(v_found) > 0 THEN
        v_fence := nextval('livewell.fence_seq');
        v_found := ARRAY(SELECT i FROM unnest(v_found) AS i ORDER BY i);
        RETURN QUERY
        UPDATE livewell.job j
        SET state = 'running', worker = p_worker, fence = v_fence + width_bucket(j.id, v_found),
            attempt = j.attempt + 1, started_at = v_now, deadline_at = NULL
        WHERE j.id = ANY (v_found)
        RETURNING 'claimed', j.id, j.fence, j.attempt, j.max_attempts, j.lost, j.lane, j.rank,
            j.queue, j.kind, j.payload::text, j.unique_key, j.group_key, j.trace;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.claim_jobs IS
    'Claims ready jobs for a worker incarnation, each under its own fence.';
REVOKE ALL ON FUNCTION livewell.claim_jobs FROM PUBLIC;

-- ── queue/functions/claim/claim_limited.sql ──
-- Take jobs of one limited queue: at most p_calls calls, as many as its concurrency, its groups and
-- its limiter allow now. Blocked work is never claimed and never burns an attempt.
--
--     lock_limited ──locked──▶ measure_room ──room──▶ pick_limited ──jobs──▶ take
--          └──buried, nothing──────┴──no room─────────────┴──none may go──▶ why, and for how long
--
-- Called by: worker/claim_limited.py, inline worker. Never ahead of need: each call must start at
--            once, its permit is short-lived.
-- p_kinds, p_batches: how many jobs of a kind one call may carry; kinds that are not named carry
-- one.
-- p_credentials: those that the worker can use; NULL: whichever there are. What it could not call
--                it does not claim.
-- Half open, the probe is chosen: a key that is not failing goes before any that is (see
-- limited_candidates), and those that are failing not before failing_until.
-- Index:     job_ready_idx, job_suspect_idx, job_limited_idx, job_group_idx. The planner settings
--            below hold in the steps too.
-- Answer:    the jobs (those with the same `call` are one call and one permit); or one row that
--            says why there are none, and when to ask again.
-- Lock first, then read, in separate statements: the queue's row, then its limiter's;
-- what runs is counted by statements that begin after that.
-- A permit is counted from the grant, not from before we waited for those locks: twenty workers
-- that ask at once wait for each other longer than a short permit lasts. The worker counts from
-- when it sent the claim, so the time spent waiting in here is added; all of it lies between the
-- sending and the grant. It ends also where there is no rate: a call that is made much later may
-- fall into a silence that was asked for meanwhile.
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
    v_begun     timestamptz := livewell.now();          -- a stopwatch for the locks
    v_locked    record;
    v_queue     livewell.queue;
    v_limiter   livewell.limiter;
    v_now       timestamptz;
    v_waited    float8;                 -- seconds, for the locks
    v_room      livewell.limited_room;
    v_pick      livewell.limited_pick;
    v_fence     bigint;
BEGIN
    v_locked := livewell.lock_limited(p_worker, p_queue);
    IF v_locked.answer IS NOT NULL THEN
        RETURN NEXT livewell.limited_answer(v_locked.answer, v_locked.reason);
        RETURN;
    END IF;
    v_queue := v_locked.locked_queue;
    v_limiter := v_locked.locked_limiter;
    v_now := livewell.now();
    v_waited := greatest(extract(epoch FROM v_now - v_begun), 0);

    v_room := livewell.measure_room(v_queue, v_limiter, v_now, p_calls, p_credentials);
    IF v_room.calls <= 0 THEN
        RETURN NEXT livewell.limited_answer('wait', v_room.reason, v_room.wait_seconds);
        RETURN;
    END IF;
    v_pick := livewell.pick_limited(
        v_queue, v_limiter, v_room, v_now, p_empty, p_kinds, p_batches
    );
    IF cardinality(v_pick.jobs) = 0 THEN
        RETURN NEXT livewell.limited_answer('wait', v_pick.reason, v_pick.wait_seconds);
        RETURN;
    END IF;

    v_fence := nextval('livewell.fence_seq');
    IF v_room.credential IS NOT NULL THEN
        PERFORM livewell.grant_calls(
            v_limiter, v_room.credential, v_now, v_pick.n_calls, v_fence + 1,
            ARRAY(SELECT DISTINCT v_fence + c FROM unnest(v_pick.calls) AS c)
        );
    END IF;
    RETURN QUERY
    UPDATE livewell.job j
    SET state = 'running', worker = p_worker, fence = v_fence + t.place,
        call_fence = v_fence + t.call, attempt = j.attempt + 1, started_at = v_now,
        deadline_at = NULL, credential = coalesce(v_room.credential, ''),
        reserved_units = CASE WHEN v_limiter.budget_units IS NOT NULL THEN t.units END
    FROM unnest(v_pick.jobs, v_pick.calls, v_pick.units)
        WITH ORDINALITY AS t (id, call, units, place)
    WHERE j.id = t.id
    RETURNING 'claimed', j.id, j.fence, j.attempt, j.max_attempts, j.lost, j.lane, j.rank, j.queue,
        j.kind, j.payload::text, j.unique_key, j.group_key, j.trace, j.call_fence, j.call_key,
        j.credential,
        v_limiter.permit_seconds + v_waited,
        NULL::float8, NULL::text;
END
$$;
COMMENT ON FUNCTION livewell.claim_limited IS
    'Claims jobs of a limited queue within its limits, each under its own fence and with its '
    'credential.';
REVOKE ALL ON FUNCTION livewell.claim_limited FROM PUBLIC;

-- ── queue/functions/claim/exchange_jobs.sql ──
-- Finish what is done and claim what comes next, in one call and one commit.
--
-- Called by: worker/claim_ahead.py, for every batch of results.
-- Why two statements inside: in one statement the slots that the finish frees would be invisible to
-- the claim.
-- Why the lease is locked before anything is finished: release_worker takes lease, then jobs; the
-- other way round the two deadlock.
-- Answer:    a row `fenced` with id and fence for each result that was not ours any more, then what
--            claim_jobs answers. p_limit 0 claims nothing.
CREATE OR REPLACE FUNCTION livewell.exchange_jobs(
    p_worker bigint,
    p_ids bigint[],
    p_fences bigint[],
    p_others jsonb,
    p_queues text[],
    p_limit integer,
    p_empty boolean,
    p_mark_ranks bigint[] DEFAULT NULL,
    p_mark_ids bigint[] DEFAULT NULL
)
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
        SELECT 'fenced'::text, f.job_id, f.job_fence, NULL::smallint, NULL::smallint,
            NULL::smallint, NULL::smallint, NULL::bigint, NULL::text, NULL::text, NULL::text,
            NULL::text, NULL::text, NULL::text
        FROM livewell.finish_jobs(p_worker, p_ids, p_fences, p_others) f;
    END IF;
    IF p_limit > 0 THEN
        RETURN QUERY
        SELECT c.*
        FROM livewell.claim_jobs(p_worker, p_queues, p_limit, p_empty, p_mark_ranks, p_mark_ids) c;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.exchange_jobs IS
    'finish_jobs and claim_jobs in one round trip and one transaction.';
REVOKE ALL ON FUNCTION livewell.exchange_jobs FROM PUBLIC;

-- ── queue/functions/claim/group_has_room.sql ──
-- May one more job of this group run: fewer than the queue's group limit run in the queue, and
-- fewer than per_key in all queues of the limiter, those picked just now included.
--
-- Called by: pick_limited, under the row locks of the queue and the limiter.
-- Index:     job_group_idx.
CREATE OR REPLACE FUNCTION livewell.group_has_room(
    p_queue text,
    p_group_limit integer,
    p_queues text[],
    p_per_key integer,
    p_group text,
    p_taken bigint[]
)
RETURNS boolean
LANGUAGE sql
SET search_path = ''
SET enable_seqscan = off
AS $$
    SELECT (
        p_group_limit IS NULL
        OR p_group_limit > t.n + (
            SELECT count(*) FROM livewell.job j
            WHERE j.queue = p_queue AND j.group_key = p_group AND j.state = 'running'
        )
    )
        AND (
            p_per_key IS NULL
            OR p_per_key > t.n + (
                SELECT count(*) FROM livewell.job j
                WHERE j.queue = ANY (p_queues) AND j.group_key = p_group AND j.state = 'running'
            )
        )
    FROM (
        SELECT count(*) AS n FROM livewell.job j
        WHERE j.id = ANY (p_taken) AND j.group_key = p_group
    ) t
$$;
COMMENT ON FUNCTION livewell.group_has_room IS
    'Whether a group is below its limit, in its queue and with its limiter.';
REVOKE ALL ON FUNCTION livewell.group_has_room FROM PUBLIC;

-- ── queue/functions/claim/limited_answer.sql ──
-- The row of claim_limited that is not a job.
--
-- Called by: claim_limited.
CREATE OR REPLACE FUNCTION livewell.limited_answer(
    p_answer text, p_reason text DEFAULT NULL, p_wait_seconds float8 DEFAULT NULL
)
RETURNS livewell.limited_job
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT jsonb_populate_record(
        NULL::livewell.limited_job,
        jsonb_build_object('answer', p_answer, 'reason', p_reason, 'wait_seconds', p_wait_seconds)
    )
$$;
COMMENT ON FUNCTION livewell.limited_answer IS
    'An answer of claim_limited without a job: why, and for how long.';
REVOKE ALL ON FUNCTION livewell.limited_answer FROM PUBLIC;

-- ── queue/functions/claim/limited_candidates.sql ──
-- The first ready jobs of a limited queue, locked: lane 0 before lane 1, then rank, then id.
--
-- Called by: pick_limited, under the queue's row lock.
-- p_suspect: the worker is empty, so a job that was held by a dying worker may run, alone (see
--            claim_jobs).
-- p_probe_of: the breaker of this limiter lets one call through: a job whose key is not failing
--             (R13). If there is none and p_failing allows it, the one that has failed least, and
--             longest ago.
-- Index:     job_suspect_idx, job_ready_idx, limiter_failing_pkey.
CREATE OR REPLACE FUNCTION livewell.limited_candidates(
    p_queue text,
    p_suspect boolean,
    p_limit integer,
    p_not bigint[],
    p_probe_of text DEFAULT NULL,
    p_failing boolean DEFAULT false
)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    v_found bigint[] := '{}';
BEGIN
    IF p_probe_of IS NOT NULL THEN
        v_found := ARRAY(
            SELECT r.id FROM livewell.job r
            WHERE r.queue = p_queue
                AND r.state = 'ready'
                AND r.lost = 0
                AND r.id <> ALL (p_not)
                AND NOT EXISTS (
                    SELECT FROM livewell.limiter_failing f
                    WHERE f.limiter = p_probe_of
                        AND f.key = coalesce(r.group_key, r.unique_key, r.id::text)
                        AND f.failures > 0
                )
            ORDER BY r.lane, r.rank, r.id LIMIT p_limit FOR UPDATE SKIP LOCKED
        );
        IF cardinality(v_found) > 0 OR NOT p_failing THEN
            RETURN v_found;
        END IF;
        RETURN ARRAY(
            SELECT l.id
            FROM (
                (
                    SELECT j.id FROM livewell.job j
                    WHERE j.queue = p_queue AND j.state = 'ready' AND j.lost = 0
                    LIMIT 5000
                )
                UNION ALL
                (
                    SELECT j.id FROM livewell.job j
                    WHERE p_suspect AND j.queue = p_queue AND j.state = 'ready' AND j.lost > 0
                    LIMIT 5000
                )
            ) r
            JOIN livewell.job l ON l.id = r.id AND l.id <> ALL (p_not)
            CROSS JOIN LATERAL (
                SELECT max(f.failures) AS failures, max(f.failed_at) AS failed_at
                FROM livewell.limiter_failing f
                WHERE f.limiter = p_probe_of
                    AND f.key = coalesce(l.group_key, l.unique_key, l.id::text)
            ) k
            ORDER BY coalesce(k.failures, 0), coalesce(k.failed_at, '-infinity'), l.lane, l.rank,
                l.id
            LIMIT 1 FOR UPDATE OF l SKIP LOCKED
        );
    END IF;
    IF p_suspect THEN
        v_found := ARRAY(
            SELECT s.id FROM livewell.job s
            WHERE s.queue = p_queue AND s.state = 'ready' AND s.lost > 0
            ORDER BY s.lane, s.rank, s.id LIMIT 1 FOR UPDATE SKIP LOCKED
        );
    END IF;
    IF cardinality(v_found) = 0 THEN
        v_found := ARRAY(
            SELECT r.id FROM livewell.job r
            WHERE r.queue = p_queue AND r.state = 'ready' AND r.lost = 0 AND r.id <> ALL (p_not)
            ORDER BY r.lane, r.rank, r.id LIMIT p_limit FOR UPDATE SKIP LOCKED
        );
    END IF;
    RETURN v_found;
END
$$;
COMMENT ON FUNCTION livewell.limited_candidates IS
    'Locks and returns the first ready jobs of a limited queue.';
REVOKE ALL ON FUNCTION livewell.limited_candidates FROM PUBLIC;

-- ── queue/functions/claim/lock_behind_marks.sql ──
-- Lock the first ready jobs of a queue that are behind the marks of its lanes.
--
-- Called by: claim_jobs, for a worker that uses marks, with the planner settings of claim_jobs.
-- Index:     job_ready_idx.
-- p_ranks, p_ids: the marks, lane 0 and lane 1; NULL: from the beginning.
-- A worker uses marks while looking from the beginning is slow, as it is when somebody holds an old
-- snapshot and every job since then left an index entry that cannot be removed. What is enqueued
-- before a mark waits until somebody looks from the beginning again: docs/adr/0004-scan-mark.md.
CREATE OR REPLACE FUNCTION livewell.lock_behind_marks(
    p_queue text, p_limit integer, p_ranks bigint[], p_ids bigint[]
)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_found bigint[] := '{}';
BEGIN
    IF NOT EXISTS (
        SELECT FROM livewell.queue q
        WHERE q.name = p_queue
            AND q.paused_at IS NULL
            AND q.concurrency IS NULL
            AND q.group_limit IS NULL
            AND q.limiter IS NULL
    ) THEN
        RETURN v_found;
    END IF;
    FOR v_lane IN 0 .. 1 LOOP
        EXIT WHEN cardinality(v_found) >= p_limit;
        v_found := v_found || ARRAY(
            SELECT r.id FROM livewell.job r
            WHERE r.queue = p_queue
                AND r.lane = v_lane
                AND r.state = 'ready'
                AND r.lost = 0
                AND (r.rank, r.id) > (
                    coalesce(p_ranks[v_lane + 1], -9223372036854775808),
                    coalesce(p_ids[v_lane + 1], 0)
                )
            ORDER BY r.rank, r.id LIMIT p_limit - cardinality(v_found)
            FOR UPDATE SKIP LOCKED
        );
    END LOOP;
    RETURN v_found;
END
$$;
COMMENT ON FUNCTION livewell.lock_behind_marks IS
    'Locks and returns the first ready jobs of a queue behind the marks of its lanes.';
REVOKE ALL ON FUNCTION livewell.lock_behind_marks FROM PUBLIC;

-- ── queue/functions/claim/lock_limited.sql ──
-- First step of claim_limited: take its locks, in their order, and say whether there is anything to
-- claim.
--
-- Called by: claim_limited.
-- Index:     job_ready_idx, job_suspect_idx.
-- Locks:     the worker's row (see claim_jobs), the queue's, its limiter's. Each is a statement of
--            its own: what runs is counted by statements that begin after the last of them.
-- Answer:    NULL: go on, with both rows as they are under the locks. buried: the worker has no
--            lease. wait: there is nothing to claim, and the reason.
-- The planner settings are those of claim_limited.
CREATE OR REPLACE FUNCTION livewell.lock_limited(
    p_worker bigint,
    p_queue text,
    OUT answer text,
    OUT reason text,
    OUT locked_queue livewell.queue,
    OUT locked_limiter livewell.limiter
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'jobs are claimed on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;
    IF NOT FOUND THEN
        answer := 'buried';
        RETURN;
    END IF;
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    SELECT * INTO locked_queue FROM livewell.queue q WHERE q.name = p_queue FOR NO KEY UPDATE;
    IF NOT FOUND OR locked_queue.paused_at IS NOT NULL THEN
        answer := 'wait';
        reason := 'paused';
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
        answer := 'wait';
        reason := 'nothing';
        RETURN;
    END IF;
    IF locked_queue.limiter IS NOT NULL THEN
        SELECT * INTO locked_limiter FROM livewell.limiter l
        WHERE l.name = locked_queue.limiter
        FOR NO KEY UPDATE;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.lock_limited IS
    'Locks what a claim of a limited queue counts under, or says why there is nothing to claim.';
REVOKE ALL ON FUNCTION livewell.lock_limited FROM PUBLIC;

-- ── queue/functions/claim/lock_suspect.sql ──
-- Lock the first job, in the given order of queues, that was held by a worker when that died: it
-- runs alone. Nothing, if there is none that may run.
--
-- Called by: claim_jobs, for an empty worker, if there is a suspect in any of the queues. The
--            planner settings are those of claim_jobs.
-- Index:     job_suspect_idx.
CREATE OR REPLACE FUNCTION livewell.lock_suspect(p_queues text[])
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_found bigint[] := '{}';
    v_queue text;
BEGIN
    FOREACH v_queue IN ARRAY p_queues LOOP
        CONTINUE WHEN NOT EXISTS (
            SELECT FROM livewell.queue q
            WHERE q.name = v_queue
                AND q.paused_at IS NULL
                AND q.concurrency IS NULL
                AND q.group_limit IS NULL
                AND q.limiter IS NULL
        );
        v_found := ARRAY(
            SELECT s.id FROM livewell.job s
            WHERE s.queue = v_queue AND s.state = 'ready' AND s.lost > 0
            ORDER BY s.lane, s.rank, s.id LIMIT 1 FOR UPDATE SKIP LOCKED
        );
        EXIT WHEN cardinality(v_found) > 0;
    END LOOP;
    RETURN v_found;
END
$$;
COMMENT ON FUNCTION livewell.lock_suspect IS
    'Locks and returns the first job that was lost with a worker.';
REVOKE ALL ON FUNCTION livewell.lock_suspect FROM PUBLIC;

-- ── queue/functions/claim/measure_room.sql ──
-- Second step of claim_limited: how many calls and jobs of a queue may start now, and under which
-- credential.
--
-- Called by: claim_limited, with the rows that lock_limited has locked in earlier statements.
-- Index:     job_limited_idx.
-- p_credentials: those that the worker can use; NULL: whichever there are.
-- The planner settings are those of claim_limited.
CREATE OR REPLACE FUNCTION livewell.measure_room(
    p_queue livewell.queue,
    p_limiter livewell.limiter,
    p_now timestamptz,
    p_calls integer,
    p_credentials text[]
)
RETURNS livewell.limited_room
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_room      livewell.limited_room;
    v_reserved  jsonb;
    v_c         record;
    v_most      integer := 0;
BEGIN
    v_room.calls := least(p_calls, 1000);
    v_room.jobs := 5000;        -- a block of fences has 16383
    v_room.probe := false;
    IF p_queue.concurrency IS NOT NULL THEN
        v_room.jobs := p_queue.concurrency - (
            SELECT count(*) FROM livewell.job j
            WHERE j.queue = p_queue.name AND j.credential IS NOT NULL
        );
        v_room.calls := least(v_room.calls, v_room.jobs);
        v_room.reason := CASE WHEN v_room.calls <= 0 THEN 'queue' END;
    END IF;
    IF p_limiter.name IS NULL OR v_room.calls <= 0 THEN
        RETURN v_room;
    END IF;
    v_room.running := ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = p_limiter.name);
    IF p_limiter.concurrency IS NOT NULL THEN
        -- Calls, not jobs: a call of fifty jobs is one.
        v_room.calls := least(
            v_room.calls,
            p_limiter.concurrency - (
                SELECT count(DISTINCT (j.worker, coalesce(j.call_fence, j.fence)))
                FROM livewell.job j
                WHERE j.queue = ANY (v_room.running) AND j.credential IS NOT NULL
            )
        );
        IF v_room.calls <= 0 THEN
            v_room.reason := 'concurrency';
            RETURN v_room;
        END IF;
    END IF;

    SELECT coalesce(jsonb_object_agg(r.credential, r.units), '{}') INTO v_reserved
    FROM (
        SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
        WHERE j.queue = ANY (v_room.running) AND j.credential IS NOT NULL
        GROUP BY j.credential
    ) r;
    SELECT coalesce(jsonb_object_agg(e.kind, ceil(e.units)), '{}') INTO v_room.estimates
    FROM livewell.limiter_estimate e
    WHERE e.limiter = p_limiter.name;
    FOR v_c IN
        SELECT *
        FROM livewell.limiter_room(
            p_limiter, p_now, v_reserved,
            CASE p_limiter.budget_unit
                WHEN 'calls' THEN 1
                ELSE least(
                    p_limiter.estimate_units,
                    (SELECT min(x.value::float8) FROM jsonb_each_text(v_room.estimates) AS x)
                )
            END,
            ARRAY(
                SELECT c.name FROM livewell.limiter_credential c
                WHERE c.limiter = p_limiter.name
                    AND c.probe_fence IS NOT NULL
                    AND EXISTS (
                        SELECT FROM livewell.job j
                        WHERE j.queue = ANY (v_room.running)
                            AND j.credential IS NOT NULL
                            AND j.fence = c.probe_fence
                    )
            )
        ) AS r
        WHERE p_credentials IS NULL OR r.credential = ANY (p_credentials)
    LOOP
        IF v_c.calls > 0
            AND (
                v_room.credential IS NULL
                OR (v_c.calls, v_c.background_calls) > (v_most, v_room.background_calls)
            )
        THEN
            v_most := v_c.calls;
            v_room.credential := v_c.credential;
            v_room.background_calls := v_c.background_calls;
            v_room.probe := v_c.probe;
            v_room.units := v_c.units;
            v_room.background_units := v_c.background_units;
        END IF;
        IF v_c.reason IS NOT NULL
            AND (v_room.reason IS NULL OR v_c.wait_seconds < v_room.wait_seconds)
        THEN
            v_room.reason := v_c.reason;
            v_room.wait_seconds := v_c.wait_seconds;
        END IF;
    END LOOP;
    v_room.calls := least(v_room.calls, v_most);
    IF v_room.probe THEN
        SELECT c.failing_until INTO v_room.failing_until FROM livewell.limiter_credential c
        WHERE c.limiter = p_limiter.name AND c.name = v_room.credential;
    END IF;
    RETURN v_room;
END
$$;
COMMENT ON FUNCTION livewell.measure_room IS
    'What a limited queue may start now: under its concurrency, its limiter and a credential.';
REVOKE ALL ON FUNCTION livewell.measure_room FROM PUBLIC;

-- ── queue/functions/claim/pick_limited.sql ──
-- Third step of claim_limited: which jobs go, and which of them share a call.
--
-- Called by: claim_limited, under the locks of lock_limited.
-- Index:     see limited_candidates, read_candidates and group_has_room.
-- p_kinds, p_batches: how many jobs of a kind one call may carry; kinds that are not named carry
-- one.
-- Where nothing can share a call, no more jobs are looked at than may be called; once a call is
-- going that others might join, a second look goes deeper (5,000 jobs looked at for each claim of
-- 50 calls took 29 ms instead of 4).
-- Why the loop is one piece: whether a job goes depends on all that were taken before it, and a
-- function for each job would be called a thousand times in a claim.
-- The planner settings are those of claim_limited.
CREATE OR REPLACE FUNCTION livewell.pick_limited(
    p_queue livewell.queue,
    p_limiter livewell.limiter,
    p_room livewell.limited_room,
    p_now timestamptz,
    p_empty boolean,
    p_kinds text[],
    p_batches integer[]
)
RETURNS livewell.limited_pick
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_rooms     integer[] := ARRAY[p_room.calls, least(p_room.calls, p_room.background_calls)];
    v_units     bigint[] := ARRAY[p_room.units, p_room.background_units];
    v_reason    text := p_room.reason;
    v_wait      float8 := p_room.wait_seconds;
    v_per_key   integer := least(p_queue.group_limit, p_limiter.per_key);
    v_batch_max integer := greatest(1, (SELECT max(b) FROM unnest(p_batches) AS b));
    v_seen      bigint[];
    v_taken     bigint[] := '{}';
    v_calls     bigint[] := '{}';       -- for each its call's first job, as a place in v_taken
    v_reserve   bigint[] := '{}';       -- for each what it is expected to use
    v_keys      text[] := '{}';         -- calls that others may join, by kind and key
    v_first     integer[] := '{}';      -- and of each its first job, and how many it carries
    v_load      integer[] := '{}';
    v_j         record;
    v_unit      bigint;                 -- what this job is expected to use
    v_place     integer;
    v_shared    boolean;                -- it fits into a call that is already going
    v_open      boolean := false;       -- a call is going that others may join
    v_asked     integer;                -- how many jobs were to be looked at
    v_used      integer := 0;           -- calls so far
    v_full      bigint[];
BEGIN
    -- Whoever beyond their group's limit we meet on the way becomes held, and is not met again; so
    -- a few rounds find what may run.
    FOR v_round IN 1 .. 5 LOOP
        v_full := '{}';
        v_asked := least(
            (v_rooms[1] - v_used) * (CASE WHEN v_open THEN v_batch_max ELSE 1 END) + 50, 5000
        );
        v_seen := livewell.limited_candidates(
            p_queue.name, p_empty AND v_round = 1 AND cardinality(v_taken) = 0, v_asked, v_taken,
            CASE WHEN p_room.probe THEN p_limiter.name END,
            coalesce(p_room.failing_until <= p_now, true)
        );
        EXIT WHEN cardinality(v_seen) = 0;
        FOR v_j IN
            SELECT *
            FROM livewell.read_candidates(
                v_seen, p_kinds, p_batches, p_room.estimates, p_limiter.estimate_units
            )
        LOOP
            EXIT WHEN v_used >= v_rooms[1] AND NOT v_open OR cardinality(v_taken) >= p_room.jobs;
            IF v_per_key IS NOT NULL
                AND v_j.group_key IS NOT NULL
                AND NOT livewell.group_has_room(
                    p_queue.name, p_queue.group_limit, p_room.running, p_limiter.per_key,
                    v_j.group_key, v_taken
                )
            THEN
                v_full := v_full || v_j.id;
                CONTINUE;
            END IF;
            -- Does it fit into a call that is already going?
            v_place := CASE WHEN v_j.batch > 1 THEN array_position(v_keys, v_j.call_name) END;
            v_shared := v_place IS NOT NULL AND v_load[v_place] < v_j.batch;
            v_unit := CASE
                WHEN p_limiter.budget_unit = 'calls' THEN (NOT v_shared)::integer
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
                IF v_j.joinable THEN
                    v_open := true;
                    IF v_place IS NULL THEN
                        v_keys := v_keys || v_j.call_name;
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
        EXIT WHEN v_used >= v_rooms[1] AND NOT v_open OR cardinality(v_taken) >= p_room.jobs;
    END LOOP;

    IF cardinality(v_taken) = 0 AND p_room.failing_until > p_now THEN
        v_reason := 'breaker';
        v_wait := extract(epoch FROM p_room.failing_until - p_now);
    ELSIF cardinality(v_seen) = 0 THEN
        v_reason := 'group';
    END IF;
    RETURN ROW(v_taken, v_calls, v_reserve, v_used, coalesce(v_reason, 'rate'), v_wait);
END
$$;
COMMENT ON FUNCTION livewell.pick_limited IS
    'Picks the jobs of a limited queue that may run now, and puts them into calls.';
REVOKE ALL ON FUNCTION livewell.pick_limited FROM PUBLIC;

-- ── queue/functions/claim/raise_fences.sql ──
-- After a failover: raise every sequence of numbers above all that the old primary may have handed
-- out.
--
-- Called by: claim_jobs, lock_limited, take_call, reserve_job_ids, register_worker and
--            acquire_singleton, when the timeline is not the one we know; they look themselves,
--            because a look takes a microsecond.
-- A standby that is promoted may lack the last seconds of the old primary: fences, job ids and
-- worker numbers that somebody still holds would be handed out a second time, and an old result
-- would fit a new claim (F-B18).
-- 2^24 blocks: four hours of what may be missing, at a thousand claims a second.
-- Singletons number their terms themselves: after n failovers from n × 2^32 on (acquire_singleton).
-- A restored dump and an upgraded cluster have another timeline, too: raising once more than needed
-- costs nothing.
-- Not promised: an old primary that goes on answering beside the new one. Whoever promotes must see
-- to that.
-- Why SECURITY DEFINER: setval needs a right that would let a worker turn the numbers back.
CREATE OR REPLACE FUNCTION livewell.raise_fences()
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    c_blocks CONSTANT bigint := 16777216;
    v_now pg_catalog.timestamptz;
    v_timeline bigint := (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint;
BEGIN
    -- one raises; the others wait for it and find it done
    PERFORM pg_catalog.pg_advisory_xact_lock(7091316);
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') = v_timeline THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.setval(
        'livewell.fence_seq', pg_catalog.nextval('livewell.fence_seq') + 16384 * c_blocks
    );
    PERFORM pg_catalog.setval(
        'livewell.job_id_seq', pg_catalog.nextval('livewell.job_id_seq') + 64 * c_blocks
    );
    PERFORM pg_catalog.setval(
        'livewell.worker_id_seq', pg_catalog.nextval('livewell.worker_id_seq') + c_blocks
    );
    PERFORM pg_catalog.nextval('livewell.failover_seq');
    v_now := livewell.now();
    PERFORM pg_catalog.setval('livewell.promoted_seq', (extract(epoch FROM v_now) * 1000)::bigint);
    -- last: whoever sees it may go on
    PERFORM pg_catalog.setval('livewell.timeline_seq', v_timeline);
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.raise_fences IS
    'Raises fences, job ids and worker numbers above what an old primary may have handed out, '
    'once for each timeline.';
REVOKE ALL ON FUNCTION livewell.raise_fences FROM PUBLIC;

-- ── queue/functions/claim/read_candidates.sql ──
-- What a claim of a limited queue needs to know about each job that it may take: lane 0 before lane
-- 1, then rank, then id.
--
-- Called by: pick_limited, with what limited_candidates has locked in an earlier statement.
-- Index:     job_pkey.
-- p_kinds, p_batches: see pick_limited. p_estimates: units that a call is expected to use, by kind;
--            p_estimate: of other kinds.
-- call_name: jobs with the same one may share a call of at most `batch` jobs. joinable: others may
--            join its call; a call key that is the job's own unique key is shared with nobody.
-- The planner settings are those of claim_limited.
CREATE OR REPLACE FUNCTION livewell.read_candidates(
    p_ids bigint[], p_kinds text[], p_batches integer[], p_estimates jsonb, p_estimate bigint
)
RETURNS TABLE (
    id bigint, lane smallint, group_key text, lost smallint, batch integer, call_name text,
    joinable boolean, units bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT j.id, j.lane, j.group_key, j.lost, coalesce(b.batch, 1),
        j.kind || E'\x01' || coalesce(j.call_key, ''),
        b.batch > 1 AND (j.call_key IS NULL OR j.call_key IS DISTINCT FROM j.unique_key),
        coalesce(j.units, (p_estimates ->> j.kind)::float8::bigint, p_estimate)
    FROM livewell.job j
    LEFT JOIN unnest(p_kinds, p_batches) AS b (kind, batch) ON b.kind = j.kind
    WHERE j.id = ANY (p_ids)
    ORDER BY j.lane, j.rank, j.id;
END
$$;
COMMENT ON FUNCTION livewell.read_candidates IS
    'The jobs that a claim of a limited queue may take, in order, with what one call may carry.';
REVOKE ALL ON FUNCTION livewell.read_candidates FROM PUBLIC;

-- ── queue/functions/enqueue/answer_jobs.sql ──
-- Say what became of the jobs that enqueue_jobs could not simply insert, and do what their policy
-- says.
--
-- Called by: enqueue_jobs, if insert_jobs collided with anything. Answers as described there.
-- Index:     job_unique_key_idx, the primary keys of history and of the dead letters.
-- New statements, so fresh snapshots: they see the rows that the insert collided with.
CREATE OR REPLACE FUNCTION livewell.answer_jobs(
    p_jobs jsonb, p_inserted bigint[], p_again boolean, p_now timestamptz
)
RETURNS TABLE (asked_id bigint, answer text, job_id bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_policies  pg_catalog.jsonb;
    v_changed   bigint[];
BEGIN
    SELECT jsonb_agg(e) INTO v_policies FROM jsonb_array_elements(p_jobs) AS e
    WHERE e ->> 'policy' <> 'keep'
        AND e ? 'unique_key'
        AND (e ->> 'id')::bigint <> ALL (coalesce(p_inserted, '{}'));
    IF v_policies IS NOT NULL THEN
        RETURN QUERY
        SELECT a.asked_id, a.answer, a.job_id FROM livewell.merge_jobs(v_policies, p_now) AS a;
        v_changed := ARRAY(SELECT (e ->> 'id')::bigint FROM jsonb_array_elements(v_policies) AS e);
    END IF;
    RETURN QUERY
    SELECT g.id,
        CASE
            WHEN own.id IS NOT NULL OR past.id IS NOT NULL THEN 'known'
            WHEN other.id IS NOT NULL THEN 'merged'
            ELSE 'vanished'
        END,
        coalesce(own.id, past.id, other.id, g.id)
    FROM jsonb_to_recordset(p_jobs) AS g (
        id bigint, queue pg_catalog.text, unique_key pg_catalog.text
    )
    -- LATERAL with LIMIT: one index probe per job asked for. As plain joins these read the whole
    -- live table up to some 10,000 rows (jsonb is taken for 100 rows).
    LEFT JOIN LATERAL (SELECT j.id FROM livewell.job j WHERE j.id = g.id LIMIT 1) own ON true
    LEFT JOIN LATERAL (
        SELECT h.id FROM livewell.job_history h
        WHERE p_again AND h.id = g.id
        UNION ALL
        SELECT d.id FROM livewell.dead_job d
        WHERE p_again AND d.id = g.id
        LIMIT 1
    ) past ON true
    LEFT JOIN LATERAL (
        SELECT j.id FROM livewell.job j
        WHERE j.queue = g.queue AND j.unique_key = g.unique_key AND j.held_by IS DISTINCT FROM 'k'
        LIMIT 1
    ) other ON true
    WHERE g.id <> ALL (coalesce(p_inserted, '{}')) AND g.id <> ALL (coalesce(v_changed, '{}'));
END
$$;
COMMENT ON FUNCTION livewell.answer_jobs IS
    'Answers for jobs that were not inserted: merged, held, dropped, known or vanished.';
REVOKE ALL ON FUNCTION livewell.answer_jobs FROM PUBLIC;

-- ── queue/functions/enqueue/check_jobs.sql ──
-- Refuse what enqueue_jobs cannot insert: a queue that is not declared, an unknown policy, a batch
-- that is sealed or does not exist.
--
-- Called by: enqueue_jobs, before insert_jobs.
-- Locks:     the batches, by id, until the end of the transaction: nobody seals them meanwhile.
CREATE OR REPLACE FUNCTION livewell.check_jobs(p_jobs jsonb)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_queues    pg_catalog.text[];
    v_missing   pg_catalog.text;
    v_unclear   pg_catalog.text;
    v_batches   bigint[];
BEGIN
    SELECT array_agg(DISTINCT coalesce(e ->> 'queue', '(none)')),
        array_agg(DISTINCT (e ->> 'batch_id')::bigint) FILTER (WHERE e ->> 'batch_id' IS NOT NULL),
        min(e ->> 'policy') FILTER (
            WHERE e ->> 'policy' NOT IN ('keep', 'raise', 'replace', 'again')
        )
    INTO v_queues, v_batches, v_unclear FROM jsonb_array_elements(p_jobs) e;
    SELECT n INTO v_missing FROM unnest(v_queues) AS n
    WHERE NOT EXISTS (SELECT FROM livewell.queue q WHERE q.name = n)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'queue "%" is not declared', v_missing USING ERRCODE = 'LW002';
    END IF;
    IF v_unclear IS NOT NULL THEN
        RAISE EXCEPTION 'policy "%": keep, raise, replace and again are allowed', v_unclear
            USING ERRCODE = 'LW003';
    END IF;
    IF cardinality(v_batches) > 0 THEN
        -- KEY SHARE: sealing waits for us, finishing does not.
        PERFORM FROM livewell.batch b WHERE b.id = ANY (v_batches) ORDER BY b.id FOR KEY SHARE;
        IF EXISTS (
            SELECT FROM unnest(v_batches) AS i
            WHERE NOT EXISTS (SELECT FROM livewell.batch b WHERE b.id = i AND b.sealed_at IS NULL)
        ) THEN
            RAISE EXCEPTION
                'a batch among % is sealed or does not exist: nothing can be added to it', v_batches
                USING ERRCODE = 'LW007';
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.check_jobs IS
    'Raises if one of these jobs names a queue, a policy or a batch that it cannot go to.';
REVOKE ALL ON FUNCTION livewell.check_jobs FROM PUBLIC;

-- ── queue/functions/enqueue/declare_queue.sql ──
-- Make sure a queue exists with this policy. Pausing is left as it is, and so are its limits unless
-- p_limits states them: {concurrency, group_limit, limiter}, null for none.
-- p_if_missing: whoever merely names a queue creates it, and changes nothing that somebody
--               declared.
--
-- Called by: apply_type, apply_upstream; clients and workers at start, for every queue their tasks
--            name.
-- Writes only when something differs: a fleet that starts together must not fight over one row.
CREATE OR REPLACE FUNCTION livewell.declare_queue(
    p_name text,
    p_attempts integer,
    p_backoff_base_seconds float8,
    p_backoff_cap_seconds float8,
    p_lost_max integer DEFAULT 5,
    p_limits jsonb DEFAULT NULL,
    p_if_missing boolean DEFAULT false
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_limits    livewell.queue := jsonb_populate_record(NULL::livewell.queue, p_limits);
BEGIN
    IF EXISTS (
        SELECT FROM livewell.queue q
        WHERE q.name = p_name
                AND q.attempts = p_attempts
                AND q.backoff_base_seconds = p_backoff_base_seconds
                AND q.backoff_cap_seconds = p_backoff_cap_seconds
                AND q.lost_max = p_lost_max
                AND (
                    p_limits IS NULL
                    OR (q.concurrency, q.group_limit, q.limiter) IS NOT DISTINCT FROM (
                        v_limits.concurrency, v_limits.group_limit, v_limits.limiter
                    )
                )
            OR p_if_missing AND q.name = p_name
    ) THEN
        RETURN;
    END IF;
    IF v_limits.limiter IS NOT NULL
        AND NOT EXISTS (SELECT FROM livewell.limiter l WHERE l.name = v_limits.limiter)
    THEN
        RAISE EXCEPTION 'limiter "%" is not declared', v_limits.limiter USING ERRCODE = 'LW006';
    END IF;
    INSERT INTO livewell.queue AS q (
        name, attempts, backoff_base_seconds, backoff_cap_seconds, lost_max, concurrency,
        group_limit, limiter, created_at
    )
    VALUES (
        p_name, p_attempts, p_backoff_base_seconds, p_backoff_cap_seconds, p_lost_max,
        v_limits.concurrency, v_limits.group_limit, v_limits.limiter, v_now
    )
    ON CONFLICT (name)
    DO UPDATE SET attempts = excluded.attempts,
        backoff_base_seconds = excluded.backoff_base_seconds,
        backoff_cap_seconds = excluded.backoff_cap_seconds, lost_max = excluded.lost_max,
        concurrency = CASE WHEN p_limits IS NULL THEN q.concurrency ELSE excluded.concurrency END,
        group_limit = CASE WHEN p_limits IS NULL THEN q.group_limit ELSE excluded.group_limit END,
        limiter = CASE WHEN p_limits IS NULL THEN q.limiter ELSE excluded.limiter END
    WHERE NOT p_if_missing;
END
$$;
COMMENT ON FUNCTION livewell.declare_queue IS 'Creates a queue or brings its policy up to date.';
REVOKE ALL ON FUNCTION livewell.declare_queue FROM PUBLIC;

-- ── queue/functions/enqueue/drop_repeated.sql ──
-- Take out again what a repeated call has inserted a second time; answers what stays.
--
-- Called by: enqueue_jobs, after the insert of a call that repeats one whose commit is unknown.
-- Index:     the primary keys of history and of the dead letters.
-- The first call's job may have ended while our insert waited for somebody else's key: the snapshot
-- of the insert is older than its end, the one in here is not.
CREATE OR REPLACE FUNCTION livewell.drop_repeated(p_inserted bigint[])
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_twice     bigint[];
BEGIN
    v_twice := ARRAY(
        SELECT i FROM unnest(p_inserted) AS i
        WHERE EXISTS (SELECT FROM livewell.job_history h WHERE h.id = i)
            OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = i)
    );
    IF cardinality(v_twice) = 0 THEN
        RETURN p_inserted;
    END IF;
    -- its batch has counted it
    UPDATE livewell.job j
    SET batch_id = NULL
    WHERE j.id = ANY (v_twice) AND j.batch_id IS NOT NULL;
    DELETE FROM livewell.job j WHERE j.id = ANY (v_twice);
    RETURN ARRAY(SELECT i FROM unnest(p_inserted) AS i WHERE i <> ALL (v_twice));
END
$$;
COMMENT ON FUNCTION livewell.drop_repeated IS
    'Deletes jobs that were accepted before and have ended; answers the others.';
REVOKE ALL ON FUNCTION livewell.drop_repeated FROM PUBLIC;

-- ── queue/functions/enqueue/enqueue_jobs.sql ──
-- Put jobs into the queue, one or many, in the caller's transaction.
--
-- Called by: demand_refresh, end_batches, enqueue_refreshes; every client, through Task.enqueue and
--            enqueue_many; also plain SQL. Many equal jobs without keys go faster through
--            enqueue_plain.
-- Input:     a JSON array of objects: id (from reserve_job_ids), queue, kind, payload, and
--            optionally unique_key with policy, group_key, call_key, batch_id, lane (0, 1),
--            priority (-100 … 100), delay_seconds or run_at, max_attempts, units (what its call is
--            expected to use), trace.
-- policy:    what happens when a live job has the key already
--                keep      nothing: that job stands for this one
--                raise     that job, if it waits, gets the better lane and rank of the two
--                replace   that job, if it waits, gets this payload; if it runs, this one is held
--                          and runs after it (and replaces whatever was held)
--                again     this one is held and runs after it, with its own payload; if one is held
--                          already, that will do
-- Answer:    a row only for what was NOT simply inserted: merged (into job_id), held (inserted,
--            runs after job_id's key is free), dropped (job_id is held already), known (this very
--            id was accepted before: a retried call), or vanished (the job with the key ended just
--            now: nothing was inserted, ask once more).
-- Index:     job_unique_key_idx and job_unique_held_idx decide (insert_jobs).
-- Steps:     check_jobs, insert_jobs, drop_repeated for a repeated call; answer_jobs if anything
--            was not inserted.
-- A waiting job is changed only if nobody has it locked (SKIP LOCKED): whoever has it is claiming
-- or ending it. ON CONFLICT DO UPDATE would wait, and deadlock with a finish.
CREATE OR REPLACE FUNCTION livewell.enqueue_jobs(p_jobs jsonb, p_again boolean DEFAULT false)
RETURNS TABLE (asked_id bigint, answer text, job_id bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_inserted  bigint[];
BEGIN
    PERFORM livewell.check_jobs(p_jobs);
    v_inserted := livewell.insert_jobs(p_jobs, p_again, v_now);
    IF p_again THEN
        v_inserted := livewell.drop_repeated(v_inserted);
    END IF;
    IF cardinality(v_inserted) <> jsonb_array_length(p_jobs) THEN
        RETURN QUERY
        SELECT a.asked_id, a.answer, a.job_id
        FROM livewell.answer_jobs(p_jobs, v_inserted, p_again, v_now) AS a;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.enqueue_jobs IS
    'Inserts jobs; answers only for those that were merged into a live job with the same key, '
    'held behind it, or accepted before.';
REVOKE ALL ON FUNCTION livewell.enqueue_jobs FROM PUBLIC;

-- ── queue/functions/enqueue/enqueue_keyed.sql ──
-- Put many jobs of one kind into the queue, each with its own unique key, as arrays in the same
-- order: those whose key is free are inserted, the others are answered.
--
-- Called by: whoever makes hundreds of jobs in SQL (enqueue_refreshes). What is answered goes to
--            enqueue_jobs with its policy; as a rule that is nothing. Written to JSON and read from
--            it again, 500 jobs took 20 ms instead of 11.
-- The queues must be declared. Nothing is born held: what its group has no room for is held by the
-- claim that meets it.
-- Index:     job_unique_key_idx decides; in key order, as in insert_jobs.
CREATE OR REPLACE FUNCTION livewell.enqueue_keyed(
    p_kind text,
    p_attempts integer,
    p_ids bigint[],
    p_queues text[],
    p_lanes integer[],
    p_keys text[],
    p_groups text[],
    p_calls text[],
    p_units bigint[],
    p_payloads jsonb[]
)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_rank      bigint := (extract(epoch FROM v_now) * 1000)::bigint;
    v_inserted  bigint[];
BEGIN
    WITH born AS (
        INSERT INTO livewell.job (
            id, rank, run_at, created_at, state, max_attempts, priority, lane, queue, kind,
            unique_key, group_key, call_key, units, payload
        )
        SELECT
            CASE
                WHEN g.lane NOT IN (0, 1)
                    OR p_attempts NOT BETWEEN 1 AND 100
                    OR octet_length(p_kind) NOT BETWEEN 1 AND 200
                    OR octet_length(g.key) NOT BETWEEN 1 AND 512
                    OR octet_length(g.group_key) NOT BETWEEN 1 AND 512
                    OR octet_length(g.call_key) NOT BETWEEN 1 AND 512
                    OR pg_column_size(g.payload) > 40000 AND octet_length(g.payload::text) > 262144
                    THEN livewell.refuse_job(g.lane, 0, p_attempts, g.payload)
                ELSE g.id
            END,
            v_rank, v_now, v_now, 'ready', p_attempts, 0, g.lane, g.queue, p_kind, g.key,
            g.group_key, g.call_key, g.units, g.payload
        FROM unnest(
            p_ids, p_queues, p_lanes, p_keys, p_groups, p_calls, p_units, p_payloads
        ) AS g (id, queue, lane, key, group_key, call_key, units, payload)
        ORDER BY g.queue, g.key, g.id
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT array_agg(b.id) INTO v_inserted FROM born b;
    IF cardinality(v_inserted) = cardinality(p_ids) THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT i FROM unnest(p_ids) AS i WHERE i <> ALL (coalesce(v_inserted, '{}')));
END
$$;
COMMENT ON FUNCTION livewell.enqueue_keyed IS
    'Inserts many jobs with unique keys; answers the ids of those whose key is taken.';
REVOKE ALL ON FUNCTION livewell.enqueue_keyed FROM PUBLIC;

-- ── queue/functions/enqueue/enqueue_one.sql ──
-- Put one job into the queue that is ready at once and needs no key.
--
-- Called by: Task.enqueue, the first time it tries; after an unknown outcome it asks enqueue_plain,
--            which knows ids that were accepted before.
-- One statement, no arrays: 130 µs less than enqueue_plain takes for one.
CREATE OR REPLACE FUNCTION livewell.enqueue_one(
    p_queue text,
    p_kind text,
    p_id bigint,
    p_payload jsonb,
    p_lane integer,
    p_priority integer,
    p_max_attempts integer
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    IF p_lane NOT IN (0, 1)
        OR p_priority NOT BETWEEN -100 AND 100
        OR p_max_attempts NOT BETWEEN 1 AND 100
        OR octet_length(p_kind) NOT BETWEEN 1 AND 200
        OR pg_column_size(p_payload) > 40000 AND octet_length(p_payload::text) > 262144
    THEN
        PERFORM livewell.refuse_job(p_lane, p_priority, p_max_attempts, p_payload);
    END IF;
    INSERT INTO livewell.job (
        id, rank, run_at, created_at, state, max_attempts, priority, lane, queue, kind, payload
    )
    SELECT p_id, (extract(epoch FROM v_now) * 1000)::bigint - p_priority * 60000, v_now, v_now,
        'ready', coalesce(p_max_attempts, q.attempts), p_priority, p_lane, p_queue, p_kind,
        p_payload
    FROM livewell.queue q
    WHERE q.name = p_queue;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'queue "%" is not declared', p_queue USING ERRCODE = 'LW002';
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.enqueue_one IS 'Inserts one job that is ready at once.';
REVOKE ALL ON FUNCTION livewell.enqueue_one FROM PUBLIC;

-- ── queue/functions/enqueue/enqueue_plain.sql ──
-- Put many jobs of one kind into the queue that differ only in their payload and need no key: one
-- statement over an array of ids and a JSON array of payloads, in the same order.
--
-- Called by: enqueue_many, for jobs without unique key, group, call key and batch.
-- A retried call (p_again) finds its ids taken; what has ended meanwhile is looked for only then.
-- The first time ids are new, and ON CONFLICT would cost 30 B of WAL per job for nothing.
-- What is the same for all is computed once: a rank per row took 0.8 µs.
CREATE OR REPLACE FUNCTION livewell.enqueue_plain(
    p_queue text,
    p_kind text,
    p_ids bigint[],
    p_payloads jsonb,
    p_lane integer,
    p_priority integer,
    p_delay_seconds float8,
    p_run_at timestamptz,
    p_max_attempts integer,
    p_again boolean
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_attempts  smallint;
    v_due       timestamptz := coalesce(
        p_run_at, v_now + p_delay_seconds * interval '1 second', v_now
    );
    v_state     livewell.job_state := CASE WHEN v_due > v_now THEN 'delayed' ELSE 'ready' END;
    v_rank      bigint :=
        (extract(epoch FROM greatest(v_due, v_now)) * 1000)::bigint - p_priority * 60000;
BEGIN
    SELECT coalesce(p_max_attempts, q.attempts) INTO v_attempts FROM livewell.queue q
    WHERE q.name = p_queue;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'queue "%" is not declared', p_queue USING ERRCODE = 'LW002';
    END IF;
    IF p_lane NOT IN (0, 1)
        OR p_priority NOT BETWEEN -100 AND 100
        OR v_attempts NOT BETWEEN 1 AND 100
        OR octet_length(p_kind) NOT BETWEEN 1 AND 200
    THEN
        PERFORM livewell.refuse_job(p_lane, p_priority, v_attempts, NULL);
    END IF;
    IF NOT p_again THEN
        -- Text is at most six times the binary form, so small payloads are never turned into text
        -- just to be measured.
        INSERT INTO livewell.job (
            id, rank, run_at, created_at, state, max_attempts, priority, lane, queue, kind, payload
        )
        SELECT
            CASE
                WHEN pg_column_size(g.payload) > 40000 AND octet_length(g.payload::text) > 262144
                    THEN livewell.refuse_job(p_lane, p_priority, v_attempts, g.payload)
                ELSE g.id
            END,
            v_rank, v_due, v_now, v_state, v_attempts, p_priority, p_lane, p_queue, p_kind,
            g.payload
        FROM ROWS FROM (unnest(p_ids), jsonb_array_elements(p_payloads)) AS g (id, payload);
        RETURN;
    END IF;
    INSERT INTO livewell.job (
        id, rank, run_at, created_at, state, max_attempts, priority, lane, queue, kind, payload
    )
    SELECT
        CASE
            WHEN octet_length(g.payload::text) > 262144
                THEN livewell.refuse_job(p_lane, p_priority, v_attempts, g.payload)
            ELSE g.id
        END,
        v_rank, v_due, v_now, v_state, v_attempts, p_priority, p_lane, p_queue, p_kind, g.payload
    FROM ROWS FROM (unnest(p_ids), jsonb_array_elements(p_payloads)) AS g (id, payload)
    WHERE NOT (
        EXISTS (SELECT FROM livewell.job_history h WHERE h.id = g.id)
        OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = g.id)
    )
    ON CONFLICT (id) DO NOTHING;
    -- The first call may have been under way still when our insert began, and its job may have
    -- ended since: only a new snapshot knows (see enqueue_jobs).
    DELETE FROM livewell.job j
    WHERE j.id = ANY (p_ids)
        AND j.state <> 'running'
        AND (
            EXISTS (SELECT FROM livewell.job_history h WHERE h.id = j.id)
            OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = j.id)
        );
END
$$;
COMMENT ON FUNCTION livewell.enqueue_plain IS
    'Inserts many jobs that differ only in id and payload; ids that were accepted before are left '
    'alone.';
REVOKE ALL ON FUNCTION livewell.enqueue_plain FROM PUBLIC;

-- ── queue/functions/enqueue/given_jobs.sql ──
-- Jobs as merge_jobs wants them, from the JSON array that enqueue_jobs explains: with when each is
-- due, its rank and its attempts, in the order of queues and keys.
--
-- Called by: merge_jobs. insert_jobs reads the array itself, in the statement that inserts.
CREATE OR REPLACE FUNCTION livewell.given_jobs(p_jobs jsonb, p_now timestamptz)
RETURNS TABLE (
    id bigint, queue text, kind text, payload jsonb, unique_key text, policy text, group_key text,
    call_key text, lane integer, priority integer, max_attempts integer, trace text,
    batch_id bigint, units bigint, due_at timestamptz, rank bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT g.id, g.queue, g.kind, g.payload, g.unique_key, g.policy, g.group_key, g.call_key,
        coalesce(g.lane, 1), coalesce(g.priority, 0), coalesce(g.max_attempts, q.attempts)::integer,
        g.trace, g.batch_id, g.units, d.due_at,
        (extract(epoch FROM greatest(d.due_at, p_now)) * 1000)::bigint
            - coalesce(g.priority, 0) * 60000
    FROM jsonb_to_recordset(p_jobs) AS g (
        id bigint, queue pg_catalog.text, kind pg_catalog.text, payload pg_catalog.jsonb,
        unique_key pg_catalog.text, policy pg_catalog.text, group_key pg_catalog.text,
        call_key pg_catalog.text, lane smallint, priority smallint,
        delay_seconds pg_catalog.float8, run_at pg_catalog.timestamptz, max_attempts smallint,
        trace pg_catalog.text, batch_id bigint, units bigint
    )
    JOIN livewell.queue q ON q.name = g.queue
    CROSS JOIN LATERAL (
        SELECT coalesce(g.run_at, p_now + g.delay_seconds * interval '1 second', p_now) AS due_at
    ) d
    ORDER BY g.queue, g.unique_key, g.id;
END
$$;
COMMENT ON FUNCTION livewell.given_jobs IS
    'New jobs with when they are due, their rank and their attempts, in the order of their keys.';
REVOKE ALL ON FUNCTION livewell.given_jobs FROM PUBLIC;

-- ── queue/functions/enqueue/insert_jobs.sql ──
-- Insert the jobs whose key is free: ready, delayed, or held if their group is full. Answers the
-- ids of those that were inserted.
--
-- Called by: enqueue_jobs, with the JSON array that it explains, after check_jobs.
-- Index:     job_unique_key_idx and job_unique_held_idx decide; callers with overlapping keys
--            insert in key order, so they wait for each other and never deadlock. job_group_idx for
--            what a group has.
CREATE OR REPLACE FUNCTION livewell.insert_jobs(p_jobs jsonb, p_again boolean, p_now timestamptz)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_inserted  bigint[];
BEGIN
    WITH given AS (
        SELECT g.*, q.attempts, least(q.group_limit, l.per_key) AS group_limit,
            coalesce(g.run_at, p_now + g.delay_seconds * interval '1 second', p_now) AS due_at
        FROM jsonb_to_recordset(p_jobs) AS g (
            id bigint, queue pg_catalog.text, kind pg_catalog.text, payload pg_catalog.jsonb,
            unique_key pg_catalog.text, group_key pg_catalog.text, call_key pg_catalog.text,
            lane smallint, priority smallint, delay_seconds pg_catalog.float8,
            run_at pg_catalog.timestamptz, max_attempts smallint, trace pg_catalog.text,
            batch_id bigint, units bigint
        )
        JOIN livewell.queue q ON q.name = g.queue
        LEFT JOIN livewell.limiter l ON l.name = q.limiter
        -- A call repeated after an unknown commit: what was accepted then may be finished or dead
        -- by now.
        WHERE NOT p_again
            OR NOT (
                EXISTS (SELECT FROM livewell.job_history h WHERE h.id = g.id)
                OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = g.id)
            )
    ),
    placed AS (
        -- Beyond what its group may run it is born held: 200,000 ready jobs of a full group would
        -- be in every claim's way. An estimate is enough here, the claim counts.
        SELECT g.*,
            g.group_limit IS NOT NULL
                AND g.group_key IS NOT NULL
                AND g.due_at <= p_now
                AND row_number() OVER (
                    PARTITION BY g.queue, g.group_key, g.due_at <= p_now
                    ORDER BY coalesce(g.lane, 1), coalesce(g.priority, 0) DESC, g.id
                ) + coalesce(a.active, 0) > g.group_limit AS full_group
        FROM given g
        LEFT JOIN (
            SELECT d.queue, d.group_key,
                (
                    SELECT count(*)
                    FROM (
                        SELECT FROM livewell.job j
                        WHERE j.queue = d.queue
                            AND j.group_key = d.group_key
                            AND j.state IN ('ready', 'running')
                        LIMIT d.group_limit
                    ) x
                ) AS active
            FROM (
                SELECT DISTINCT queue, group_key, group_limit FROM given
                WHERE group_limit IS NOT NULL AND group_key IS NOT NULL
            ) d
        ) a ON a.queue = g.queue AND a.group_key = g.group_key
        ORDER BY g.queue, g.unique_key, g.id
    ),
    born AS (
        INSERT INTO livewell.job (
            id, rank, run_at, created_at, state, held_by, max_attempts, priority, lane, queue, kind,
            unique_key, group_key, call_key, batch_id, units, payload, trace
        )
        SELECT
            CASE
                WHEN lane NOT IN (0, 1)
                    OR priority NOT BETWEEN -100 AND 100
                    OR coalesce(max_attempts, attempts) NOT BETWEEN 1 AND 100
                    OR octet_length(kind) NOT BETWEEN 1 AND 200
                    OR octet_length(unique_key) NOT BETWEEN 1 AND 512
                    OR octet_length(group_key) NOT BETWEEN 1 AND 512
                    OR octet_length(call_key) NOT BETWEEN 1 AND 512
                    OR pg_column_size(payload) > 40000
                        AND octet_length(payload::pg_catalog.text) > 262144
                    THEN livewell.refuse_job(
                        lane, priority, coalesce(max_attempts, attempts), payload
                    )
                ELSE id
            END,
            (extract(epoch FROM greatest(due_at, p_now)) * 1000)::bigint
                - coalesce(priority, 0) * 60000,
            due_at, p_now,
            CASE
                WHEN due_at > p_now THEN 'delayed'
                WHEN full_group THEN 'held'
                ELSE 'ready'
            END::livewell.job_state,
            CASE WHEN full_group THEN 'g'::pg_catalog."char" END, coalesce(max_attempts, attempts),
            coalesce(priority, 0), coalesce(lane, 1), queue, kind, unique_key, group_key, call_key,
            batch_id, units, payload, trace
        FROM placed
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT coalesce(array_agg(id), '{}') INTO v_inserted FROM born;
    RETURN v_inserted;
END
$$;
COMMENT ON FUNCTION livewell.insert_jobs IS
    'Inserts jobs whose unique key is free; answers the ids of those that were inserted.';
REVOKE ALL ON FUNCTION livewell.insert_jobs FROM PUBLIC;

-- ── queue/functions/enqueue/merge_jobs.sql ──
-- Jobs whose key a live job has: raise or replace that one while it waits, or hold the new one
-- behind it.
--
-- Called by: answer_jobs, for policies other than keep, after the insert met the key; the same
--            elements, and the same answers.
-- Index:     job_unique_key_idx, job_unique_held_idx.
-- In key order, as in insert_jobs (given_jobs).
-- Only waiting rows are changed, and only those that nobody has locked; a running row belongs to
-- its owner.
-- The held row is inserted without waiting for the current one: if that ends at this moment,
-- promote_held finds the held one.
CREATE OR REPLACE FUNCTION livewell.merge_jobs(p_jobs jsonb, p_now timestamptz)
RETURNS TABLE (asked_id bigint, answer text, job_id bigint)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_g         record;
    v_current   bigint;
    v_state     livewell.job_state;
    v_held      bigint;
BEGIN
    FOR v_g IN SELECT * FROM livewell.given_jobs(p_jobs, p_now) LOOP
        asked_id := v_g.id;
        -- This very id, accepted before?
        IF EXISTS (SELECT FROM livewell.job j WHERE j.id = v_g.id)
            OR EXISTS (SELECT FROM livewell.job_history h WHERE h.id = v_g.id)
            OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = v_g.id)
        THEN
            answer := 'known';
            job_id := v_g.id;
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT j.id, j.state INTO v_current, v_state FROM livewell.job j
        WHERE j.queue = v_g.queue
            AND j.unique_key = v_g.unique_key
            AND j.held_by IS DISTINCT FROM 'k';
        IF NOT FOUND THEN
            answer := 'vanished';
            job_id := v_g.id;
            RETURN NEXT;
            CONTINUE;
        END IF;
        answer := 'merged';
        job_id := v_current;
        IF v_g.policy = 'raise' THEN
            UPDATE livewell.job j
            SET lane = least(j.lane, v_g.lane), rank = least(j.rank, v_g.rank),
                priority = greatest(j.priority, v_g.priority)
            WHERE j.id = (
                SELECT w.id FROM livewell.job w
                WHERE w.id = v_current AND w.state <> 'running'
                FOR UPDATE SKIP LOCKED
            )
                AND (j.lane > v_g.lane OR j.rank > v_g.rank);
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF v_g.policy = 'replace' AND v_state <> 'running' THEN
            UPDATE livewell.job j
            SET payload = v_g.payload, lane = least(j.lane, v_g.lane),
                rank = least(j.rank, v_g.rank)
            WHERE j.id = (
                SELECT w.id FROM livewell.job w
                WHERE w.id = v_current AND w.state <> 'running'
                FOR UPDATE SKIP LOCKED
            );
            IF FOUND THEN
                RETURN NEXT;
                CONTINUE;
            END IF;
        END IF;
        -- It runs, or is being claimed or ended right now: behind it.
        INSERT INTO livewell.job (
            id, rank, run_at, created_at, state, held_by, max_attempts, priority, lane, queue, kind,
            unique_key, group_key, call_key, batch_id, units, payload, trace
        )
        VALUES (
            v_g.id, v_g.rank, v_g.due_at, p_now, 'held', 'k', v_g.max_attempts, v_g.priority,
            v_g.lane, v_g.queue, v_g.kind, v_g.unique_key, v_g.group_key, v_g.call_key,
            v_g.batch_id, v_g.units, v_g.payload, v_g.trace
        )
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            answer := 'held';
            job_id := v_g.id;
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT j.id INTO v_held FROM livewell.job j
        WHERE j.queue = v_g.queue AND j.unique_key = v_g.unique_key AND j.held_by = 'k';
        IF FOUND AND v_g.policy = 'replace' THEN
            UPDATE livewell.job j
            SET payload = v_g.payload, lane = least(j.lane, v_g.lane),
                rank = least(j.rank, v_g.rank)
            WHERE j.id = (
                SELECT w.id FROM livewell.job w
                WHERE w.id = v_held AND w.held_by = 'k'
                FOR UPDATE SKIP LOCKED
            );
            answer := 'held';
        ELSE
            answer := 'dropped';
        END IF;
        job_id := v_held;
        IF NOT FOUND OR v_held IS NULL THEN
            answer := 'vanished';       -- it was let go of at this very moment: ask once more
            job_id := v_g.id;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.merge_jobs IS
    'Applies the unique-key policies raise, replace and again to jobs whose key is taken.';
REVOKE ALL ON FUNCTION livewell.merge_jobs FROM PUBLIC;

-- ── queue/functions/enqueue/refuse_job.sql ──
-- Refuse a new job that is outside the bounds, and say which they are.
--
-- Called by: insert_jobs, enqueue_plain, enqueue_one, enqueue_keyed, for a job whose bounds they
--            found broken; it never returns. They look themselves, in the statement that inserts:
--            as a trigger with a condition the look took 95 of 730 µs of a single enqueue, because
--            Postgres reads the condition's source anew in every statement.
CREATE OR REPLACE FUNCTION livewell.refuse_job(
    p_lane integer, p_priority integer, p_attempts integer, p_payload jsonb
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF octet_length(p_payload::pg_catalog.text) > 262144 THEN
        RAISE EXCEPTION 'the payload has % bytes; 262144 are allowed',
            octet_length(p_payload::pg_catalog.text)
            USING ERRCODE = 'LW005';
    END IF;
    RAISE EXCEPTION
        'a job is born in lane 0 or 1 (not %), with a priority from -100 to 100 (not %), '
        '1 to 100 attempts (not %), a kind of 1 to 200 bytes and keys of 1 to 512 bytes',
        p_lane, p_priority, p_attempts
        USING ERRCODE = 'LW003';
END
$$;
COMMENT ON FUNCTION livewell.refuse_job IS 'Raises what is wrong with a new job.';
REVOKE ALL ON FUNCTION livewell.refuse_job FROM PUBLIC;

-- ── queue/functions/enqueue/reserve_job_ids.sql ──
-- Reserve blocks of 64 job ids; the caller owns first … first + 63 of each.
--
-- Called by: refresh_jobs; clients, once per 64 enqueues; outside any transaction, so a retry after
--            an unknown commit can name the same id.
CREATE OR REPLACE FUNCTION livewell.reserve_job_ids(p_blocks integer)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    RETURN QUERY
    SELECT nextval('livewell.job_id_seq')
    FROM generate_series(1, least(greatest(p_blocks, 1), 2000));
END
$$;
COMMENT ON FUNCTION livewell.reserve_job_ids IS
    'Gives the first id of each of n blocks of 64 job ids.';
REVOKE ALL ON FUNCTION livewell.reserve_job_ids FROM PUBLIC;

-- ── queue/functions/finish/charge_jobs.sql ──
-- Charge claims of limited queues, and tell the breaker how their calls ended.
--
-- Called by: settle_jobs and finish_jobs with what the worker measured, job_ended for jobs that
--            ended without a report.
-- One entry per claim. p_used NULL: not measured (and 0: no call was made, which teaches the
-- estimate nothing), so p_reserved is charged (a call whose worker died is charged, G6). p_ends
-- NULL: nothing is known about the call, or another entry speaks for it.
-- A call that was answered (ok, data, wall), or that was surely not made (ours, and 0 used), counts
-- for one window from now. All others may still be on their way (end_calls).
-- p_causes: the word for what went wrong with the call. p_calls, p_keys, p_fared: the call of each
--           claim, the key that it was for, and how that key fared (see mark_keys).
-- Limiter rows are locked in the order of their names, in a statement of their own, before anything
-- is read.
CREATE OR REPLACE FUNCTION livewell.charge_jobs(
    p_queues text[],
    p_credentials text[],
    p_fences bigint[],
    p_kinds text[],
    p_reserved bigint[],
    p_used bigint[] DEFAULT NULL,
    p_ends text[] DEFAULT NULL,
    p_causes text[] DEFAULT NULL,
    p_calls bigint[] DEFAULT NULL,
    p_keys text[] DEFAULT NULL,
    p_fared text[] DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_limiters  text[];
    v_newest    bigint;
    v_c         record;
BEGIN
    v_limiters := ARRAY(
        SELECT DISTINCT q.limiter FROM livewell.queue q
        WHERE q.name = ANY (p_queues) AND q.limiter IS NOT NULL
        ORDER BY q.limiter
    );
    IF cardinality(v_limiters) = 0 THEN
        RETURN;
    END IF;
    PERFORM FROM livewell.limiter l
    WHERE l.name = ANY (v_limiters)
    ORDER BY l.name FOR NO KEY UPDATE;
    SELECT s.last_value + 16383 INTO v_newest FROM livewell.fence_seq s;
    FOR v_c IN
        SELECT q.limiter, g.credential, array_agg(g.fence ORDER BY g.fence) AS fences,
            array_agg(coalesce(g.used, g.reserved, 0) ORDER BY g.fence) AS units,
            array_agg(g.kind ORDER BY g.fence) AS kinds,
            array_agg(g.used IS NOT NULL ORDER BY g.fence) AS measured,
            array_agg(
                coalesce(
                    g.ended IN ('ok', 'data', 'wall') OR g.ended = 'ours' AND g.used = 0, false
                ) ORDER BY g.fence
            ) AS answered,
            array_agg(g.fence ORDER BY g.fence) FILTER (WHERE g.ended IS NOT NULL) AS call_fences,
            array_agg(g.ended ORDER BY g.fence) FILTER (WHERE g.ended IS NOT NULL) AS ends,
            array_agg(g.cause ORDER BY g.fence) FILTER (WHERE g.ended IS NOT NULL) AS causes,
            array_agg(g.key ORDER BY g.fence) FILTER (WHERE g.fared IS NOT NULL) AS keys,
            array_agg(g.fared ORDER BY g.fence) FILTER (WHERE g.fared IS NOT NULL) AS fared,
            array_agg(g.call ORDER BY g.fence) FILTER (WHERE g.fared IS NOT NULL) AS calls
        FROM unnest(
            p_queues, p_credentials, p_fences, p_kinds, p_reserved, p_used, p_ends, p_causes,
            p_calls, p_keys, p_fared
        ) AS g (queue, credential, fence, kind, reserved, used, ended, cause, call, key, fared)
        JOIN livewell.queue q ON q.name = g.queue AND q.limiter IS NOT NULL
        GROUP BY q.limiter, g.credential
        ORDER BY q.limiter, g.credential
    LOOP
        PERFORM livewell.end_calls(v_c.limiter, v_c.credential, v_c.fences, v_c.answered);
        PERFORM livewell.book_usage(
            v_c.limiter, v_c.credential, v_c.fences, v_c.units, v_c.kinds, v_c.measured
        );
        IF v_c.ends IS NOT NULL OR v_c.fared IS NOT NULL THEN
            PERFORM livewell.book_calls(
                v_c.limiter, v_c.credential, v_c.call_fences, v_c.ends, v_newest, v_c.causes,
                v_c.keys, v_c.fared, v_c.calls
            );
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.charge_jobs IS
    'Books the usage of claims and how their calls ended with the limiters of their queues.';
REVOKE ALL ON FUNCTION livewell.charge_jobs FROM PUBLIC;

-- ── queue/functions/finish/finish_jobs.sql ──
-- End jobs we hold: p_ids succeeded, p_others (a JSON array of {id, fence, outcome, reason, error,
-- delay_seconds, traceback}) ended some other way.
-- Of a limited queue also those that succeeded are in p_others, with queue, kind, credential, used
-- (units), ended (how the call went, see book_calls), cause (the word for what went wrong) and
-- fared (how the job's own key did). What was used is booked even when the job is no longer ours:
-- the call was made. Once per fence; if it was charged by estimate meanwhile, the difference.
--
-- Called by: store_refreshes; exchange_jobs, for the results of a worker; job.transaction() as its
--            last statement before COMMIT.
-- Answer:    a row for each one that was not ours any more (fenced); nothing was written for those.
-- Index:     primary key. Deliberately no "state = 'running'" in the WHERE: it would offer
--            job_worker_idx to the planner.
-- Why two lists are enough for the successes: a fence is handed to one job once, so a row whose id
-- AND fence are both in our lists is the pair we were given.
-- Locks:     job rows, then limiters by name, then batches by id, all of them before anything is
--            ended if more than one statement below would take some (see job_ended).
-- Why one function: every finish, of plain or of limited jobs, would pay for calls of its steps.
-- width_bucket is a binary search in the sorted fences; = ANY (p_fences) looks at each of them for
-- each row (2.3 of 17 µs per job in batches of 500).
CREATE OR REPLACE FUNCTION livewell.finish_jobs(
    p_worker bigint, p_ids bigint[], p_fences bigint[], p_others jsonb DEFAULT NULL
)
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
    v_used      bigint[];
    v_ends      text[];
    v_traces    text[];
    v_causes    text[];
    v_fared     text[];
    v_owned     bigint[];           -- fences: a worker may hold results of two claims of one job
    v_queues    text[];
    v_batches   bigint[];
BEGIN
    IF p_others IS NOT NULL THEN
        -- Successes, other ends and late reports are written by different statements: each takes
        -- its limiters and batches in order, but all of them together do not (40P01).
        PERFORM FROM livewell.job j
        WHERE j.id = ANY (ARRAY(SELECT o.id FROM jsonb_to_recordset(p_others) AS o (id bigint)))
            AND j.worker = p_worker
        ORDER BY j.id FOR UPDATE;
        SELECT
            array_agg(DISTINCT coalesce(j.queue, o.queue)) FILTER (
                WHERE coalesce(j.credential, o.credential) IS NOT NULL
            ),
            array_agg(DISTINCT j.batch_id) FILTER (WHERE j.batch_id IS NOT NULL)
        INTO v_queues, v_batches
        FROM jsonb_to_recordset(p_others) AS o (
            id bigint, fence bigint, queue text, credential text
        )
        LEFT JOIN livewell.job j ON j.id = o.id AND j.fence = o.fence AND j.worker = p_worker;
        IF cardinality(p_ids) > 0 AND (v_queues IS NOT NULL OR v_batches IS NOT NULL) THEN
            WITH ours AS (
                SELECT j.queue, j.credential, j.batch_id FROM livewell.job j
                WHERE j.id = ANY (p_ids) AND j.worker = p_worker
                ORDER BY j.id FOR UPDATE
            )
            SELECT v_queues || array_agg(w.queue) FILTER (WHERE w.credential IS NOT NULL),
                v_batches || array_agg(w.batch_id) FILTER (WHERE w.batch_id IS NOT NULL)
            INTO v_queues, v_batches FROM ours w;
        END IF;
        IF v_queues IS NOT NULL THEN
            PERFORM FROM livewell.limiter l
            WHERE l.name = ANY (
                ARRAY(SELECT q.limiter FROM livewell.queue q WHERE q.name = ANY (v_queues))
            )
            ORDER BY l.name FOR NO KEY UPDATE;
        END IF;
        IF v_batches IS NOT NULL THEN
            PERFORM FROM livewell.batch b
            WHERE b.id = ANY (v_batches)
            ORDER BY b.id FOR NO KEY UPDATE;
        END IF;
    END IF;

    IF cardinality(p_ids) > 0 THEN
        v_now := livewell.now();
        v_fences := ARRAY(SELECT f FROM unnest(p_fences) AS f ORDER BY f);
        WITH gone AS (
            DELETE FROM livewell.job j
            WHERE j.id = ANY (p_ids)
                AND j.fence = v_fences[width_bucket(j.fence, v_fences)]
                AND j.worker = p_worker
            RETURNING j.id, j.fence, j.created_at, j.started_at, j.attempt, j.queue, j.kind
        )
        INSERT INTO livewell.job_history (
            id, fence, worker, created_at, started_at, finished_at, attempt, outcome, queue, kind,
            note
        )
        -- '': without a NULL a row is 7 bytes shorter, here and in the WAL
        SELECT g.id, g.fence, p_worker, g.created_at, g.started_at, v_now, g.attempt, 'succeeded',
            g.queue, g.kind, ''
        FROM gone g;
        GET DIAGNOSTICS v_n = ROW_COUNT;
        IF v_n < cardinality(p_ids) THEN
            -- Rare, so it may be dear: to collect what was done in the statement above took 0.8 of
            -- 15 µs per job. Not ours is what this transaction has not written; behind a savepoint
            -- that is all of a batch in which anything was fenced, which errs on the safe side.
            RETURN QUERY
            SELECT a.id, a.fence FROM unnest(p_ids, p_fences) AS a (id, fence)
            WHERE v_n = 0
                OR NOT EXISTS (
                    SELECT FROM livewell.job_history h
                    WHERE h.id = a.id
                        AND h.fence = a.fence
                        AND h.xmin = pg_catalog.pg_current_xact_id()::pg_catalog.xid
                );
        END IF;
    END IF;

    IF p_others IS NOT NULL THEN
        WITH owned AS (
            SELECT j.id, j.fence, o.outcome, o.reason, o.error, o.delay_seconds, o.used, o.ended,
                o.traceback, o.cause, o.fared
            FROM jsonb_to_recordset(p_others) AS o (
                id bigint, fence bigint, outcome text, reason text, error text,
                delay_seconds float8, used bigint, ended text, traceback text, cause text,
                fared text
            )
            -- Locked above. OFFSET 0: by primary key; statistics from when nothing ran say that
            -- worker = p_worker finds next to nothing, and then the whole table is read (257 ms for
            -- 200 jobs).
            CROSS JOIN LATERAL (
                SELECT b.id, b.fence, b.worker FROM livewell.job b WHERE b.id = o.id OFFSET 0
            ) j
            WHERE j.fence = o.fence AND j.worker = p_worker
            ORDER BY j.id
        )
        SELECT array_agg(w.id), array_agg(w.fence), array_agg(w.outcome), array_agg(w.reason),
            array_agg(w.error), array_agg(w.delay_seconds), array_agg(w.used), array_agg(w.ended),
            array_agg(w.traceback), array_agg(w.cause), array_agg(w.fared)
        INTO v_ids, v_owned, v_outcomes, v_reasons, v_errors, v_delays, v_used, v_ends, v_traces,
            v_causes, v_fared
        FROM owned w;
        PERFORM livewell.settle_jobs(
            v_ids, v_outcomes, v_reasons, v_errors, v_delays, v_used, v_ends, v_traces, v_causes,
            v_fared
        );
        PERFORM livewell.charge_jobs(
            array_agg(o.queue ORDER BY o.fence), array_agg(o.credential ORDER BY o.fence),
            array_agg(o.fence ORDER BY o.fence), array_agg(o.kind ORDER BY o.fence),
            array_agg(0::bigint ORDER BY o.fence), array_agg(o.used ORDER BY o.fence)
        )
        FROM jsonb_to_recordset(p_others) AS o (
            id bigint, fence bigint, queue text, kind text, credential text, used bigint
        )
        WHERE o.used IS NOT NULL
            AND o.credential IS NOT NULL
            AND o.fence <> ALL (coalesce(v_owned, '{}'))
        HAVING count(*) > 0;
        RETURN QUERY
        SELECT o.id, o.fence FROM jsonb_to_recordset(p_others) AS o (id bigint, fence bigint)
        WHERE o.fence <> ALL (coalesce(v_owned, '{}'));
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.finish_jobs IS
    'Finishes many held jobs with mixed outcomes; returns those the worker no longer owned.';
REVOKE ALL ON FUNCTION livewell.finish_jobs FROM PUBLIC;

-- ── queue/functions/finish/job_ended.sql ──
-- Jobs have left the live table: let the next with their key or group go on, count their batches,
-- charge what nobody charged.
--
-- Called by: trigger job_ended, after every DELETE on livewell.job, however it came about.
-- Locks, in this order everywhere: job rows, limiter rows by name, batch rows by id. Held rows are
-- taken with SKIP LOCKED and never waited for; what is missed because it was not committed yet,
-- promote_held finds within a second or so.
CREATE OR REPLACE FUNCTION livewell.job_ended()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_batches   bigint[];
BEGIN
    PERFORM FROM gone g
    WHERE g.unique_key IS NOT NULL
        OR g.group_key IS NOT NULL
        OR g.batch_id IS NOT NULL
        OR g.credential IS NOT NULL
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM livewell.charge_jobs(
        array_agg(g.queue ORDER BY g.id), array_agg(g.credential ORDER BY g.id),
        array_agg(g.fence ORDER BY g.id), array_agg(g.kind ORDER BY g.id),
        array_agg(g.reserved_units ORDER BY g.id)
    )
    FROM gone g
    WHERE g.credential IS NOT NULL
        AND NOT EXISTS (SELECT FROM livewell.usage_settled s WHERE s.fence = g.fence)
    HAVING count(*) > 0;
    PERFORM livewell.release_held(
        array_agg(g.queue),
        array_agg(CASE WHEN g.held_by IS DISTINCT FROM 'k' THEN g.unique_key END),
        array_agg(CASE WHEN g.state IN ('ready', 'running') THEN g.group_key END)
    )
    FROM gone g
    WHERE g.unique_key IS NOT NULL OR g.group_key IS NOT NULL
    HAVING count(*) > 0;

    v_batches := ARRAY(
        SELECT DISTINCT g.batch_id FROM gone g WHERE g.batch_id IS NOT NULL ORDER BY g.batch_id
    );
    IF cardinality(v_batches) > 0 THEN
        -- In a statement of its own, in order, before anything is counted.
        PERFORM FROM livewell.batch b WHERE b.id = ANY (v_batches) ORDER BY b.id FOR NO KEY UPDATE;
        -- Where a job went is already written: settle_jobs and finish_jobs insert before or with
        -- the delete, in this transaction.
        UPDATE livewell.batch b
        SET remaining = b.remaining - n.ended, failed = b.failed + n.failed,
            cancelled = b.cancelled + n.cancelled,
            succeeded = b.succeeded + n.ended - n.failed - n.cancelled
        FROM (
            SELECT g.batch_id, count(*) AS ended,
                count(*) FILTER (
                    WHERE EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = g.id)
                ) AS failed,
                count(*) FILTER (
                    WHERE EXISTS (
                        SELECT FROM livewell.job_history h
                        WHERE h.id = g.id AND h.fence = g.fence AND h.outcome = 'cancelled'
                    )
                ) AS cancelled
            FROM gone g
            WHERE g.batch_id IS NOT NULL
            GROUP BY g.batch_id
        ) n
        WHERE b.id = n.batch_id;
        PERFORM livewell.end_batches(v_batches);
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION livewell.job_ended IS
    'Releases what was held behind ended jobs, counts their batches and charges their limiters.';
REVOKE ALL ON FUNCTION livewell.job_ended FROM PUBLIC;

-- ── queue/functions/finish/release_held.sql ──
-- Let go of held jobs: for each key the one that waits behind it, for each group as many as left
-- it.
--
-- Called by: job_ended, settle_jobs, promote_held, with one entry per job that left (NULL: no key,
--            no group).
-- Index:     job_unique_held_idx, job_unique_key_idx, job_group_idx.
-- A job let go too many is no harm: claim_limited counts what runs and holds it again. SKIP LOCKED:
-- whoever has the row is releasing or cancelling it.
-- The rank stays: whoever waited longest is still first.
CREATE OR REPLACE FUNCTION livewell.release_held(p_queues text[], p_keys text[], p_groups text[])
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_n     integer := 0;
    v_m     integer := 0;
BEGIN
    -- Lowest id first: two callers with the same keys never wait for each other crosswise.
    WITH next AS (
        SELECT h.id
        FROM (
            SELECT DISTINCT k.queue, k.key FROM unnest(p_queues, p_keys) AS k (queue, key)
            WHERE k.key IS NOT NULL
        ) k
        JOIN livewell.job h ON h.queue = k.queue AND h.unique_key = k.key AND h.held_by = 'k'
        WHERE NOT EXISTS (
            SELECT FROM livewell.job c
            WHERE c.queue = k.queue AND c.unique_key = k.key AND c.held_by IS DISTINCT FROM 'k'
        )
        ORDER BY h.id FOR UPDATE OF h SKIP LOCKED
    )
    UPDATE livewell.job j
    SET held_by = NULL,
        state = CASE WHEN j.run_at > v_now THEN 'delayed' ELSE 'ready' END::livewell.job_state
    FROM next n
    WHERE j.id = n.id AND j.held_by = 'k';
    GET DIAGNOSTICS v_n = ROW_COUNT;

    WITH left_group AS (
        -- A key of a limiter is one group over all its queues.
        SELECT w.name AS queue, g.group_key, count(*) AS n
        FROM unnest(p_queues, p_groups) AS g (queue, group_key)
        JOIN livewell.queue q ON q.name = g.queue
        LEFT JOIN livewell.limiter l ON l.name = q.limiter AND l.per_key IS NOT NULL
        JOIN livewell.queue w ON w.name = q.name OR w.limiter = l.name
        WHERE g.group_key IS NOT NULL
        GROUP BY w.name, g.group_key
    ),
    next AS (
        SELECT h.id
        FROM left_group g
        CROSS JOIN LATERAL (
            SELECT j.id FROM livewell.job j
            WHERE j.queue = g.queue
                AND j.group_key = g.group_key
                AND j.state = 'held'
                AND j.held_by = 'g'
            ORDER BY j.lane, j.rank, j.id LIMIT g.n FOR UPDATE SKIP LOCKED
        ) h
    )
    UPDATE livewell.job j
    SET held_by = NULL, state = 'ready'
    FROM next n
    WHERE j.id = n.id;
    GET DIAGNOSTICS v_m = ROW_COUNT;
    RETURN v_n + v_m;
END
$$;
COMMENT ON FUNCTION livewell.release_held IS
    'Makes ready what waited for the given keys and groups; answers how many.';
REVOKE ALL ON FUNCTION livewell.release_held FROM PUBLIC;

-- ── queue/functions/finish/settle_jobs.sql ──
-- Decide what becomes of jobs that did not simply succeed. The caller has locked the rows and knows
-- they are its to settle.
--
-- Called by: drop_refreshes, reconcile_jobs, release_worker; finish_jobs (owner), recover_jobs
--            (lost, overdue), cancel_job.
-- Outcomes in:  retry      failed this time; delay_seconds NULL = the queue's back-off
--               refused    will never succeed: dead letter now (reason says why)
--               cancelled  ended because somebody asked
--               released   not the job's fault (deadlock, shutdown, no handler here): the attempt
--                          is given back
--               lost       its worker died: the attempt is given back, the loss is counted
--               succeeded  ended well, in a queue whose limiter wants to know more
-- p_used, p_ends, p_causes and p_fared: what the worker measured, see charge_jobs; a job that does
-- not say how its key fared fared as its call. What was never started (reconcile_jobs says so with
-- 0) used nothing.
-- What waits: a job held behind a key stays held while this one is tried again; a freed place in a
-- group goes to the next.
-- No `id = ANY (p_ids)` beside the joins: with the statistics of an empty table the array was
-- searched anew for every row (5,000 jobs: 4 s instead of 0.1 s).
-- A cancel that was asked for meanwhile wins over every way of running again.
-- Why one function: all but the charge is one statement, in which each job is read once.
CREATE OR REPLACE FUNCTION livewell.settle_jobs(
    p_ids bigint[],
    p_outcomes text[],
    p_reasons text[],
    p_errors text[],
    p_delays float8[],
    p_used bigint[] DEFAULT NULL,
    p_ends text[] DEFAULT NULL,
    p_tracebacks text[] DEFAULT NULL,
    p_causes text[] DEFAULT NULL,
    p_fared text[] DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_queues    text[];
    v_keys      text[];
    v_groups    text[];
BEGIN
    PERFORM livewell.charge_jobs(
        array_agg(j.queue ORDER BY j.id), array_agg(j.credential ORDER BY j.id),
        array_agg(j.fence ORDER BY j.id), array_agg(j.kind ORDER BY j.id),
        array_agg(j.reserved_units ORDER BY j.id), array_agg(g.used ORDER BY j.id),
        array_agg(g.ended ORDER BY j.id), array_agg(g.cause ORDER BY j.id),
        array_agg(coalesce(j.call_fence, j.fence) ORDER BY j.id),
        array_agg(coalesce(j.group_key, j.unique_key, j.id::text) ORDER BY j.id),
        array_agg(coalesce(g.fared, g.ended) ORDER BY j.id)
    )
    -- by primary key: else every running job of a limited queue is read
    FROM unnest(p_ids, p_used, p_ends, p_causes, p_fared) AS g (id, used, ended, cause, fared)
    CROSS JOIN LATERAL (SELECT b.* FROM livewell.job b WHERE b.id = g.id OFFSET 0) j
    WHERE j.credential IS NOT NULL
    HAVING count(*) > 0;

    WITH given AS (
        SELECT *
        FROM unnest(
            p_ids, p_outcomes, p_reasons, p_errors, p_delays, p_tracebacks
        ) AS g (id, outcome, reason, error, delay_seconds, traceback)
    ),
    fate AS MATERIALIZED (
        SELECT j.id, j.queue, j.group_key, j.state, g.outcome, left(g.error, 4000) AS error,
            left(g.traceback, 8192) AS traceback,
            CASE
                WHEN g.outcome = 'succeeded' THEN 'succeeded'
                WHEN g.outcome = 'cancelled' OR j.cancel_requested AND g.outcome <> 'refused'
                    THEN 'cancelled'
                WHEN g.outcome = 'refused' THEN 'dead'
                WHEN g.outcome = 'retry' AND j.attempt >= j.max_attempts THEN 'dead'
                WHEN g.outcome = 'lost' AND j.lost + 1 >= q.lost_max THEN 'dead'
                ELSE 'again'
            END AS fate,
            CASE g.outcome
                WHEN 'refused' THEN coalesce(g.reason, 'refused')
                WHEN 'lost' THEN 'lost'
                ELSE 'attempts'
            END AS reason,
            CASE
                WHEN g.delay_seconds IS NOT NULL THEN greatest(g.delay_seconds, 0)
                -- base · 2ⁿ up to the cap, ± 20 % so that what failed together does not return
                -- together.
                WHEN g.outcome = 'retry'
                    THEN least(
                        q.backoff_cap_seconds, q.backoff_base_seconds * 2 ^ least(j.attempt - 1, 30)
                    ) * (0.8 + 0.4 * random())
                ELSE 0
            END * interval '1 second' AS delay
        FROM livewell.job j
        JOIN given g ON g.id = j.id
        JOIN livewell.queue q ON q.name = j.queue
    ),
    again AS (
        UPDATE livewell.job j
        SET
            state = CASE
                WHEN f.delay > interval '0' THEN 'delayed'
                ELSE 'ready'
            END::livewell.job_state,
            run_at = v_now + f.delay,
            -- A return to ready gets a new rank: its age counts from now, so it cannot overtake
            -- what waited meanwhile.
            rank = (extract(epoch FROM v_now + f.delay) * 1000)::bigint - j.priority * 60000,
            worker = NULL, credential = NULL, call_fence = NULL, reserved_units = NULL,
            started_at = NULL, deadline_at = NULL, progress = 0, progress_note = NULL,
            attempt = CASE
                WHEN f.outcome IN ('released', 'lost') THEN greatest(j.attempt - 1, 0)
                ELSE j.attempt
            END,
            lost = CASE WHEN f.outcome = 'lost' THEN j.lost + 1 ELSE j.lost END,
            last_error = coalesce(f.error, j.last_error),
            -- never an old one beside a newer error
            last_traceback = CASE WHEN f.error IS NULL THEN j.last_traceback ELSE f.traceback END
        FROM fate f
        WHERE f.id = j.id AND f.fate = 'again'
        RETURNING j.queue, j.group_key, f.state
    ),
    freed AS (
        SELECT array_agg(a.queue) AS queues, array_agg(NULL::text) AS keys,
            array_agg(a.group_key) AS groups
        FROM again a
        WHERE a.group_key IS NOT NULL AND a.state = 'running'
    ),
    gone AS (
        DELETE FROM livewell.job j
        USING fate f
        WHERE f.id = j.id AND f.fate <> 'again'
        RETURNING j.*, f.fate, f.reason, f.error, f.outcome, f.traceback
    ),
    buried AS (
        INSERT INTO livewell.dead_job (
            id, batch_id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue,
            kind, unique_key, group_key, call_key, reason, payload, error, traceback, trace, units
        )
        SELECT g.id, g.batch_id, g.created_at, v_now, g.attempt, g.max_attempts,
            g.lost + (g.outcome = 'lost')::integer, g.priority, g.lane, g.queue, g.kind,
            g.unique_key, g.group_key, g.call_key, g.reason, g.payload,
            coalesce(g.error, g.last_error),
            CASE WHEN g.error IS NULL THEN g.last_traceback ELSE g.traceback END, g.trace, g.units
        FROM gone g
        WHERE g.fate = 'dead'
    ),
    past AS (
        INSERT INTO livewell.job_history (
            id, fence, worker, created_at, started_at, finished_at, attempt, outcome, queue, kind,
            note
        )
        SELECT g.id, g.fence, g.worker, g.created_at, g.started_at, v_now, g.attempt,
            CASE g.fate
                WHEN 'succeeded' THEN 'succeeded'
                ELSE 'cancelled'
            END::livewell.job_outcome,
            g.queue, g.kind, g.error
        FROM gone g
        WHERE g.fate IN ('cancelled', 'succeeded')
    )
    SELECT f.queues, f.keys, f.groups INTO v_queues, v_keys, v_groups FROM freed f;
    IF v_queues IS NOT NULL THEN
        PERFORM livewell.release_held(v_queues, v_keys, v_groups);
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.settle_jobs IS
    'Sends locked jobs where their outcome leads: back to ready, to a later time, to the dead '
    'letters or to history as cancelled.';
REVOKE ALL ON FUNCTION livewell.settle_jobs FROM PUBLIC;

-- ── queue/functions/lease/reconcile_jobs.sql ──
-- Hand back jobs that are ours in the database but that we do not know of: a claim whose answer
-- never arrived.
--
-- Called by: keeper, every fifth heartbeat and after a claim with an unknown outcome.
-- Index:     job_worker_idx.
-- p_mark: a fence seen before our oldest claim in flight was sent; what that claim may yet bring
--         has higher fences and is left alone.
-- They were never started, so neither an attempt nor a loss is counted, and nothing was used; a
-- permit that came with them is burnt.
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
        WHERE j.state = 'running'
            AND j.worker = p_worker
            AND j.fence <= p_mark
            AND j.fence <> ALL (p_known)
        ORDER BY j.id LIMIT 10000 FOR UPDATE SKIP LOCKED
    );
    v_n := cardinality(v_ids);
    IF v_n > 0 THEN
        PERFORM livewell.settle_jobs(
            v_ids, array_fill('released'::text, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]),
            array_fill(NULL::text, ARRAY[v_n]), array_fill(NULL::float8, ARRAY[v_n]),
            array_fill(0::bigint, ARRAY[v_n])
        );
    END IF;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.reconcile_jobs IS
    'Returns to ready the jobs a worker holds without knowing it; answers how many.';
REVOKE ALL ON FUNCTION livewell.reconcile_jobs FROM PUBLIC;

-- ── queue/functions/lease/register_worker.sql ──
-- Start a new worker incarnation: its row is its lease.
--
-- Called by: worker, at start and whenever it finds its row gone.
CREATE OR REPLACE FUNCTION livewell.register_worker(
    p_name text,
    p_version text,
    p_queues text[],
    p_kinds text[],
    p_slots integer,
    p_lease_seconds float8
)
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
        RAISE EXCEPTION 'workers register on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    v_id := nextval('livewell.worker_id_seq');
    INSERT INTO livewell.worker (
        id, started_at, renewed_at, expires_at, steady_since, lease, slots, queues, kinds, name,
        version
    )
    VALUES (
        v_id, v_now, v_now, v_now + v_lease, v_now, v_lease, p_slots, p_queues, p_kinds,
        left(p_name, 200), left(p_version, 50)
    );
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION livewell.register_worker IS
    'Creates the lease row of a new worker incarnation and returns its id.';
REVOKE ALL ON FUNCTION livewell.register_worker FROM PUBLIC;

-- ── queue/functions/lease/release_worker.sql ──
-- The end of a graceful stop: hand back everything still held and give up the lease, at once.
--
-- Called by: worker, last thing. Locks its own worker row FOR UPDATE first, so no claim of ours can
--            slip in behind.
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
    v_ids := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.state = 'running' AND j.worker = p_worker
        ORDER BY j.id FOR UPDATE
    );
    v_n := cardinality(v_ids);
    IF v_n > 0 THEN
        PERFORM livewell.settle_jobs(
            v_ids, array_fill('released'::text, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]),
            array_fill(NULL::text, ARRAY[v_n]), array_fill(NULL::float8, ARRAY[v_n])
        );
    END IF;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.release_worker IS
    'Ends a worker incarnation and returns its jobs to ready; answers how many.';
REVOKE ALL ON FUNCTION livewell.release_worker FROM PUBLIC;

-- ── queue/functions/lease/renew_worker.sql ──
-- The heartbeat: renew the lease, set deadlines of handlers that have started, learn what to
-- cancel.
--
-- Called by: keeper, every heartbeat.
-- Index:     primary keys; job_cancel_idx; job_suspect_idx.
-- A late heartbeat is valid as long as the row exists: only burying ends a lease. A gap longer than
-- a third of the lease makes us unsteady, because then everybody else may have had the same gap (an
-- outage, a promotion), and nobody may be buried for it.
-- Why SKIP LOCKED on jobs: one that is being finished right now needs no deadline, and waiting for
-- it could deadlock with the finish.
CREATE OR REPLACE FUNCTION livewell.renew_worker(
    p_worker bigint, p_ids bigint[], p_fences bigint[], p_timeout_seconds float8[]
)
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
        steady_since = CASE
            WHEN v_now - w.renewed_at > w.lease / 3 THEN v_now
            ELSE w.steady_since
        END
    WHERE w.id = p_worker
    RETURNING w.queues, w.lease
    INTO v_queues, v_lease;

    IF cardinality(p_ids) > 0 THEN
        UPDATE livewell.job j
        SET deadline_at = v_now + t.seconds * interval '1 second'
        FROM unnest(p_ids, p_fences, p_timeout_seconds) AS t (id, fence, seconds)
        WHERE j.id = t.id
            AND j.fence = t.fence
            AND j.worker = p_worker
            AND j.id = ANY (
                ARRAY(
                    SELECT l.id FROM livewell.job l
                    WHERE l.id = ANY (p_ids)
                    ORDER BY l.id FOR UPDATE SKIP LOCKED
                )
            );
    END IF;

    -- Suspects need an empty worker. Of the workers, as many take a turn at draining as there are
    -- suspects, at most half; the turn moves on every lease.
    SELECT count(*) INTO v_suspects
    FROM unnest(v_queues) AS q (name)
    -- nobody drains for what may not run
    JOIN livewell.queue o ON o.name = q.name AND o.paused_at IS NULL
    CROSS JOIN LATERAL (
        SELECT FROM livewell.job j
        WHERE j.queue = q.name AND j.state = 'ready' AND j.lost > 0
        LIMIT 50
    ) s;
    IF v_suspects > 0 THEN
        SELECT count(*), count(*) FILTER (WHERE w.id < p_worker) INTO v_workers, v_place
        FROM livewell.worker w
        WHERE w.queues && v_queues;
    END IF;

    RETURN QUERY
    SELECT true,
        -- The end of the newest block of fences. A sequence never used shows its first number, not
        -- the one before: the first claim may be in flight.
        (
            SELECT CASE WHEN s.is_called THEN s.last_value + 16383 ELSE 0 END
            FROM livewell.fence_seq s
        ),
        ARRAY(SELECT j.fence FROM livewell.job j WHERE j.worker = p_worker AND j.cancel_requested),
        v_suspects > 0
            AND (
                v_place + (extract(epoch FROM v_now) / extract(epoch FROM v_lease))::bigint
            ) % v_workers < least(v_suspects, greatest(v_workers / 2, 1));
END
$$;
COMMENT ON FUNCTION livewell.renew_worker IS
    'Renews a lease; answers whether it still exists, the newest fence, the fences to cancel, and '
    'whether to drain for suspects.';
REVOKE ALL ON FUNCTION livewell.renew_worker FROM PUBLIC;

-- ── queue/functions/lease/report_lacks.sql ──
-- Say which credentials a worker cannot use: "limiter credential" for each. It claims nothing with
-- them.
--
-- Called by: worker, when it has looked which queues it claims from and something has changed.
CREATE OR REPLACE FUNCTION livewell.report_lacks(p_worker bigint, p_lacks text[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.worker w SET lacks = p_lacks WHERE w.id = p_worker AND w.lacks <> p_lacks;
END
$$;
COMMENT ON FUNCTION livewell.report_lacks IS 'Keeps which credentials a worker cannot use.';
REVOKE ALL ON FUNCTION livewell.report_lacks FROM PUBLIC;

-- ── queue/functions/lease/report_progress.sql ──
-- Record progress of jobs we hold; what is not ours any more is silently left alone (the finish
-- will say so).
--
-- Called by: worker, at most once a second for all its jobs together.
-- Index:     primary key; no indexed column changes, so the update stays on its page.
CREATE OR REPLACE FUNCTION livewell.report_progress(
    p_worker bigint, p_ids bigint[], p_fences bigint[], p_percents smallint[], p_notes text[]
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_n integer;
BEGIN
    UPDATE livewell.job j
    SET progress = least(greatest(p.percent, 0), 100), progress_note = left(p.note, 500)
    FROM unnest(p_ids, p_fences, p_percents, p_notes) AS p (id, fence, percent, note)
    WHERE j.id = p.id
        AND j.fence = p.fence
        AND j.worker = p_worker
        AND j.id = ANY (
            ARRAY(
                SELECT l.id FROM livewell.job l
                WHERE l.id = ANY (p_ids)
                ORDER BY l.id FOR UPDATE SKIP LOCKED
            )
        );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.report_progress IS
    'Writes progress and note of held jobs; answers how many were still held.';
REVOKE ALL ON FUNCTION livewell.report_progress FROM PUBLIC;

-- ── queue/functions/lease/works_queue.sql ──
-- Whether a worker with these queues works this one: by its name, or by a pattern such as refresh.*
-- (a beginning and a star).
--
-- Called by: restart_wait, rule_credential_missing, why_refresh; list_queues, list_queue_states,
--            why_unworked.
CREATE OR REPLACE FUNCTION livewell.works_queue(p_queues text[], p_queue text)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT coalesce(
        bool_or(p_queue = w OR right(w, 1) = '*' AND starts_with(p_queue, left(w, -1))), false
    )
    FROM unnest(p_queues) AS w
$$;
COMMENT ON FUNCTION livewell.works_queue IS
    'Whether a list of queue names and patterns covers a queue.';
REVOKE ALL ON FUNCTION livewell.works_queue FROM PUBLIC;

-- ── queue/functions/operate/cancel_job.sql ──
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
        IF EXISTS (SELECT FROM livewell.job_history h WHERE h.id = p_id)
            OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = p_id)
        THEN
            RETURN 'finished';
        END IF;
        RETURN 'unknown';
    END IF;
    IF v_state = 'running' THEN
        UPDATE livewell.job j SET cancel_requested = true WHERE j.id = p_id;
        RETURN 'requested';
    END IF;
    PERFORM livewell.settle_jobs(
        ARRAY[p_id], ARRAY['cancelled'], ARRAY[NULL::text], ARRAY['cancelled while it waited'],
        ARRAY[NULL::float8]
    );
    RETURN 'cancelled';
END
$$;
COMMENT ON FUNCTION livewell.cancel_job IS
    'Cancels a waiting job at once, or asks the worker of a running one.';
REVOKE ALL ON FUNCTION livewell.cancel_job FROM PUBLIC;

-- ── queue/functions/operate/edit_dead.sql ──
-- Mend the payload of a dead letter before it is redriven.
--
-- Called by: CLI `dead edit`, clients.
-- The bound is checked here: a redrive copies the stored form, and a compressed payload looks small
-- to the trigger that measures new jobs.
CREATE OR REPLACE FUNCTION livewell.edit_dead(p_id bigint, p_payload jsonb)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF octet_length(p_payload::text) > 262144 THEN
        RAISE EXCEPTION 'the payload has % bytes; 262144 are allowed', octet_length(p_payload::text)
            USING ERRCODE = 'LW005';
    END IF;
    UPDATE livewell.dead_job d SET payload = p_payload WHERE d.id = p_id;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.edit_dead IS
    'Replaces the payload of one dead letter; false when there is none with that id.';
REVOKE ALL ON FUNCTION livewell.edit_dead FROM PUBLIC;

-- ── queue/functions/operate/hasten_job.sql ──
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
    UPDATE livewell.job j
    SET state = 'ready', run_at = v_now,
        rank = (extract(epoch FROM v_now) * 1000)::bigint - j.priority * 60000
    WHERE j.id = p_id AND j.state = 'delayed';
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.hasten_job IS
    'Makes one delayed job ready at once; false when it was not delayed.';
REVOKE ALL ON FUNCTION livewell.hasten_job FROM PUBLIC;

-- ── queue/functions/operate/list_dead.sql ──
-- A page of dead letters by id; keyset, never OFFSET.
--
-- Called by: CLI `dead list`, clients.
CREATE OR REPLACE FUNCTION livewell.list_dead(
    p_queue text, p_kind text, p_after bigint, p_limit integer
)
RETURNS TABLE (
    id bigint, queue text, kind text, reason text, attempt smallint, lost smallint,
    died_at timestamptz, error text
)
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT d.id, d.queue, d.kind, d.reason, d.attempt, d.lost, d.died_at, d.error
    FROM livewell.dead_job d
    WHERE d.id > coalesce(p_after, 0)
        AND (p_queue IS NULL OR d.queue = p_queue)
        AND (p_kind IS NULL OR d.kind = p_kind)
    ORDER BY d.id LIMIT least(greatest(p_limit, 1), 1000)
$$;
COMMENT ON FUNCTION livewell.list_dead IS 'A page of dead letters after a given id.';
REVOKE ALL ON FUNCTION livewell.list_dead FROM PUBLIC;

-- ── queue/functions/operate/list_jobs.sql ──
-- A page of live jobs by id, for people and tools; keyset, never OFFSET.
--
-- Called by: CLI `jobs list`, clients. p_after: the last id of the page before.
CREATE OR REPLACE FUNCTION livewell.list_jobs(
    p_queue text, p_state text, p_after bigint, p_limit integer
)
RETURNS TABLE (
    id bigint, queue text, kind text, state text, lane smallint, priority smallint,
    attempt smallint, max_attempts smallint, lost smallint, progress smallint, progress_note text,
    worker text, run_at timestamptz, created_at timestamptz, started_at timestamptz, last_error text
)
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT j.id, j.queue, j.kind, j.state::text, j.lane, j.priority, j.attempt, j.max_attempts,
        j.lost, j.progress, j.progress_note, w.name, j.run_at, j.created_at, j.started_at,
        j.last_error
    FROM livewell.job j
    LEFT JOIN livewell.worker w ON w.id = j.worker
    WHERE j.id > coalesce(p_after, 0)
        AND (p_queue IS NULL OR j.queue = p_queue)
        AND (p_state IS NULL OR j.state = p_state::livewell.job_state)
    ORDER BY j.id LIMIT least(greatest(p_limit, 1), 1000)
$$;
COMMENT ON FUNCTION livewell.list_jobs IS
    'A page of live jobs after a given id, filtered by queue and state.';
REVOKE ALL ON FUNCTION livewell.list_jobs FROM PUBLIC;

-- ── queue/functions/operate/list_limiters.sql ──
-- Every credential of every limiter: what it may still do, what it has used, and what it waits for.
--
-- Called by: budgets_above, rule_budget_reached, rule_calls_near_limit, state_limits; CLI `queues
--            limiters`. In queue, not in limits: what is reserved is known from what runs.
-- Index:     job_limited_idx, limiter_grant_idx, limiter_flight_idx, limiter_usage_pkey.
CREATE OR REPLACE FUNCTION livewell.list_limiters()
RETURNS TABLE (
    name text, credential text, active boolean, rate_calls integer, rate_seconds float8,
    spent bigint, budget_unit text, budget_units bigint, used bigint, reserved bigint,
    running bigint, concurrency integer, breaker text, calls_now integer, reason text,
    wait_seconds float8, queues text[]
)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_limiter   livewell.limiter;
    v_queues    text[];
BEGIN
    FOR v_limiter IN SELECT * FROM livewell.limiter l ORDER BY l.name LIMIT 1000 LOOP
        v_queues := ARRAY(
            SELECT q.name FROM livewell.queue q WHERE q.limiter = v_limiter.name ORDER BY q.name
        );
        RETURN QUERY
        WITH run AS (
            SELECT j.credential, sum(j.reserved_units)::bigint AS units,
                count(DISTINCT (j.worker, j.call_fence)) AS calls, array_agg(j.fence) AS fences
            FROM livewell.job j
            WHERE j.queue = ANY (v_queues) AND j.credential IS NOT NULL
            GROUP BY j.credential
        )
        SELECT v_limiter.name, c.name, c.active, least(v_limiter.rate_calls, c.learnt_calls),
            v_limiter.rate_seconds,
            (
                SELECT coalesce(sum(x.calls), 0)::bigint
                FROM (
                    SELECT g.calls FROM livewell.limiter_grant g
                    WHERE g.limiter = v_limiter.name
                        AND g.credential = c.name
                        AND g.at > v_now - v_limiter.rate_seconds * interval '1 second'
                    UNION ALL
                    SELECT f.calls FROM livewell.limiter_flight f
                    WHERE f.limiter = v_limiter.name
                        AND f.credential = c.name
                        AND f.at > v_now - v_limiter.rate_seconds * interval '1 second'
                ) x
            ),
            v_limiter.budget_unit, v_limiter.budget_units,
            (
                SELECT coalesce(sum(u.units), 0)::bigint FROM livewell.limiter_usage u
                WHERE u.limiter = v_limiter.name
                    AND u.credential = c.name
                    AND v_limiter.budget_units IS NOT NULL
                    AND u.since >= livewell.budget_since(v_limiter, v_now)
            ),
            coalesce(r.units, 0), coalesce(r.calls, 0), v_limiter.concurrency, c.breaker, m.calls,
            m.reason, m.wait_seconds, v_queues
        FROM livewell.limiter_credential c
        LEFT JOIN run r ON r.credential = c.name
        LEFT JOIN livewell.limiter_room(
            v_limiter, v_now,
            (SELECT coalesce(jsonb_object_agg(x.credential, x.units), '{}') FROM run x),
            v_limiter.estimate_units,
            ARRAY(
                SELECT p.name
                FROM livewell.limiter_credential p
                JOIN run x ON x.credential = p.name
                WHERE p.limiter = v_limiter.name AND p.probe_fence = ANY (x.fences)
            )
        ) m ON m.credential = c.name
        WHERE c.limiter = v_limiter.name
        ORDER BY c.name;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.list_limiters IS
    'Limiters by credential: rate and budget used, breaker, and what a claim would be told now.';
REVOKE ALL ON FUNCTION livewell.list_limiters FROM PUBLIC;

-- ── queue/functions/operate/list_queue_states.sql ──
-- Every queue, 1,000 at most: what waits in it and since when, what runs, the pace, what died.
--
-- Called by: state_queue, with its planner settings. p_sample: as sample_queue answers; p_running:
--            [[queue, worker, jobs]].
-- Index:     job_ready_idx, stat_pkey.
-- oldest_ready_seconds is how long the first in line of each lane waits, the longer of the two: a
-- rank contains the age, so nobody waits much longer.
CREATE OR REPLACE FUNCTION livewell.list_queue_states(
    p_sample jsonb, p_running jsonb, p_now timestamptz
)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_queues    jsonb;
BEGIN
    WITH counted AS (
        SELECT s ->> 0 AS queue, s ->> 1 AS state, (s ->> 2)::bigint AS n
        FROM jsonb_array_elements(p_sample -> 'jobs') AS s
    ),
    died AS (
        SELECT s ->> 0 AS queue, sum((s ->> 2)::bigint) AS n,
            jsonb_object_agg(s ->> 1, (s ->> 2)::bigint) AS reasons
        FROM jsonb_array_elements(p_sample -> 'dead') AS s
        GROUP BY s ->> 0
    ),
    pace AS (
        SELECT s.queue, sum(s.n) FILTER (WHERE s.outcome = 'succeeded') AS done,
            sum(s.n) FILTER (WHERE s.outcome <> 'succeeded') AS other,
            sum(s.ms)::float8 / greatest(sum(s.n), 1) AS mean_ms
        FROM livewell.stat s
        WHERE s.minute > p_now - interval '5 minutes'
        GROUP BY s.queue
    )
    SELECT coalesce(
        jsonb_agg(
            jsonb_build_object(
                'name', q.name, 'paused_at', q.paused_at, 'limiter', q.limiter,
                'concurrency', q.concurrency,
                'ready', coalesce(
                    (SELECT c.n FROM counted c WHERE c.queue = q.name AND c.state = 'ready'), 0
                ),
                'delayed', coalesce(
                    (SELECT c.n FROM counted c WHERE c.queue = q.name AND c.state = 'delayed'), 0
                ),
                'held', coalesce(
                    (SELECT c.n FROM counted c WHERE c.queue = q.name AND c.state = 'held'), 0
                ),
                'running', (
                    SELECT coalesce(sum((r ->> 2)::bigint), 0)
                    FROM jsonb_array_elements(p_running) AS r
                    WHERE r ->> 0 = q.name
                ),
                'dead', coalesce(d.n, 0), 'dead_reasons', coalesce(d.reasons, '{}'),
                'next_id', h.id,
                'oldest_ready_seconds', extract(epoch FROM p_now - h.since)::float8,
                'background_waits_seconds', extract(epoch FROM p_now - b.run_at)::float8,
                'workers', (
                    SELECT count(*) FROM livewell.worker w
                    WHERE livewell.works_queue(w.queues, q.name) AND w.expires_at > p_now
                ),
                'done_per_minute', coalesce(p.done, 0)::float8 / 5,
                'other_per_minute', coalesce(p.other, 0)::float8 / 5, 'mean_ms', p.mean_ms
            ) ORDER BY q.name
        ),
        '[]'
    )
    INTO v_queues
    FROM (SELECT * FROM livewell.queue o ORDER BY o.name LIMIT 1000) q
    LEFT JOIN died d ON d.queue = q.name
    LEFT JOIN pace p ON p.queue = q.name
    LEFT JOIN LATERAL (
        SELECT f.id, f.run_at FROM livewell.job f
        WHERE f.queue = q.name AND f.lane = 1 AND f.state = 'ready' AND f.lost = 0
        ORDER BY f.rank, f.id LIMIT 1
    ) b ON true
    LEFT JOIN LATERAL (
        SELECT coalesce(f.id, b.id) AS id, least(f.run_at, b.run_at) AS since
        FROM (SELECT 1) AS one
        LEFT JOIN LATERAL (
            SELECT a.id, a.run_at FROM livewell.job a
            WHERE a.queue = q.name AND a.lane = 0 AND a.state = 'ready' AND a.lost = 0
            ORDER BY a.rank, a.id LIMIT 1
        ) f ON true
    ) h ON true;
    RETURN v_queues;
END
$$;
COMMENT ON FUNCTION livewell.list_queue_states IS
    'The queues of the system state, as a JSON array.';
REVOKE ALL ON FUNCTION livewell.list_queue_states FROM PUBLIC;

-- ── queue/functions/operate/list_queues.sql ──
-- Every queue with its policy and what waits in it.
--
-- Called by: CLI `queues list`. Counts live rows only; finished work comes from stat.
CREATE OR REPLACE FUNCTION livewell.list_queues()
RETURNS TABLE (
    name text, paused_at timestamptz, attempts smallint, ready bigint, delayed bigint, held bigint,
    running bigint, dead bigint, oldest_ready_seconds float8, overdue_delayed bigint,
    workers bigint, done_per_minute float8
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT q.name, q.paused_at, q.attempts, coalesce(j.ready, 0), coalesce(j.delayed, 0),
        coalesce(j.held, 0), coalesce(j.running, 0),
        (SELECT count(*) FROM livewell.dead_job d WHERE d.queue = q.name),
        extract(epoch FROM v_now - j.oldest)::float8, coalesce(j.overdue, 0),
        (
            SELECT count(*) FROM livewell.worker w
            WHERE livewell.works_queue(w.queues, q.name) AND w.expires_at > v_now
        ),
        coalesce(
            (
                SELECT sum(s.n)::float8 / 5 FROM livewell.stat s
                WHERE s.queue = q.name
                    AND s.outcome = 'succeeded'
                    AND s.minute > v_now - interval '5 minutes'
            ),
            0
        )
    FROM livewell.queue q
    LEFT JOIN (
        SELECT l.queue, count(*) FILTER (WHERE l.state = 'ready') AS ready,
            count(*) FILTER (WHERE l.state = 'delayed') AS delayed,
            count(*) FILTER (WHERE l.state = 'held') AS held,
            count(*) FILTER (WHERE l.state = 'running') AS running,
            min(l.run_at) FILTER (WHERE l.state = 'ready') AS oldest,
            -- Q12: a delayed job past its time by a minute is stuck, and seen.
            count(*) FILTER (
                WHERE l.state = 'delayed' AND l.run_at < v_now - interval '1 minute'
            ) AS overdue
        FROM livewell.job l
        GROUP BY l.queue
    ) j ON j.queue = q.name
    ORDER BY q.name;
END
$$;
COMMENT ON FUNCTION livewell.list_queues IS
    'Queues with counts by state, age of the oldest ready job, live workers and recent '
    'throughput.';
REVOKE ALL ON FUNCTION livewell.list_queues FROM PUBLIC;

-- ── queue/functions/operate/list_worker_states.sql ──
-- Every worker, 1,000 at most: what it works, how many jobs it holds, and how its lease stands.
--
-- Called by: state_queue, with its planner settings. p_running: [[queue, worker, jobs]].
-- Index:     worker_pkey.
CREATE OR REPLACE FUNCTION livewell.list_worker_states(p_running jsonb, p_now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_workers   jsonb;
BEGIN
    SELECT coalesce(
        jsonb_agg(
            jsonb_build_object(
                'id', w.id, 'name', w.name, 'version', w.version, 'queues', w.queues,
                'lacks', w.lacks, 'slots', w.slots, 'started_at', w.started_at,
                'holds', (
                    SELECT coalesce(sum((r ->> 2)::bigint), 0)
                    FROM jsonb_array_elements(p_running) AS r
                    WHERE (r ->> 1)::bigint = w.id
                ),
                'renewed_seconds', extract(epoch FROM p_now - w.renewed_at)::float8,
                'lease_left_seconds', extract(epoch FROM w.expires_at - p_now)::float8
            ) ORDER BY w.id
        ),
        '[]'
    )
    INTO v_workers FROM (SELECT * FROM livewell.worker o ORDER BY o.id LIMIT 1000) w;
    RETURN v_workers;
END
$$;
COMMENT ON FUNCTION livewell.list_worker_states IS
    'The workers of the system state, as a JSON array.';
REVOKE ALL ON FUNCTION livewell.list_worker_states FROM PUBLIC;

-- ── queue/functions/operate/list_workers.sql ──
-- Every worker incarnation with its lease and how many jobs it holds.
--
-- Called by: CLI `queues workers`.
-- Index:     job_worker_idx.
CREATE OR REPLACE FUNCTION livewell.list_workers()
RETURNS TABLE (
    id bigint, name text, version text, queues text[], slots integer, holds bigint,
    started_at timestamptz, renewed_seconds_ago float8, lease_left_seconds float8
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT w.id, w.name, w.version, w.queues, w.slots,
        (SELECT count(*) FROM livewell.job j WHERE j.state = 'running' AND j.worker = w.id),
        w.started_at, extract(epoch FROM v_now - w.renewed_at)::float8,
        extract(epoch FROM w.expires_at - v_now)::float8
    FROM livewell.worker w
    ORDER BY w.id LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_workers IS 'Workers, their leases and how much they hold.';
REVOKE ALL ON FUNCTION livewell.list_workers FROM PUBLIC;

-- ── queue/functions/operate/pause_queue.sql ──
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
    UPDATE livewell.queue q
    SET paused_at = CASE WHEN p_paused THEN coalesce(q.paused_at, v_now) END
    WHERE q.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.pause_queue IS
    'Pauses or resumes a queue; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.pause_queue FROM PUBLIC;

-- ── queue/functions/operate/redrive_dead.sql ──
-- Give dead letters another life: same id, attempts and losses at zero, ready now.
--
-- Called by: CLI `dead redrive`, clients. By ids, or by queue and kind (NULL: any), oldest first,
--            at most p_limit.
-- A letter whose unique key is taken by a live job stays where it is and is counted as kept.
CREATE OR REPLACE FUNCTION livewell.redrive_dead(
    p_ids bigint[], p_queue text, p_kind text, p_limit integer
)
RETURNS TABLE (redriven bigint, kept bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_picked    bigint[];
    v_born      bigint[];
    v_batches   bigint[];
BEGIN
    v_picked := ARRAY(
        SELECT d.id FROM livewell.dead_job d
        WHERE (p_ids IS NULL OR d.id = ANY (p_ids))
            AND (p_queue IS NULL OR d.queue = p_queue)
            AND (p_kind IS NULL OR d.kind = p_kind)
        ORDER BY d.queue, d.unique_key, d.id LIMIT p_limit FOR UPDATE SKIP LOCKED
    );
    WITH born AS (
        INSERT INTO livewell.job (
            id, rank, batch_id, run_at, created_at, state, max_attempts, priority, lane, queue,
            kind, unique_key, group_key, call_key, payload, last_error, last_traceback, trace, units
        )
        SELECT d.id, (extract(epoch FROM v_now) * 1000)::bigint - d.priority * 60000, d.batch_id,
            v_now, d.created_at, 'ready', d.max_attempts, d.priority, d.lane, d.queue, d.kind,
            d.unique_key, d.group_key, d.call_key, d.payload, d.error, d.traceback, d.trace, d.units
        FROM livewell.dead_job d
        WHERE d.id = ANY (v_picked)
        ORDER BY d.queue, d.unique_key, d.id
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT coalesce(array_agg(b.id), '{}') INTO v_born FROM born b;
    -- A batch that has not ended waits for it again; one that has ended is past.
    v_batches := ARRAY(
        SELECT DISTINCT d.batch_id FROM livewell.dead_job d
        WHERE d.id = ANY (v_born) AND d.batch_id IS NOT NULL
        ORDER BY d.batch_id
    );
    IF cardinality(v_batches) > 0 THEN
        PERFORM FROM livewell.batch b WHERE b.id = ANY (v_batches) ORDER BY b.id FOR NO KEY UPDATE;
        UPDATE livewell.job j
        SET batch_id = NULL
        FROM livewell.batch b
        WHERE j.id = ANY (v_born) AND b.id = j.batch_id AND b.ended_at IS NOT NULL;
        UPDATE livewell.batch b
        SET failed = b.failed - n.n, remaining = b.remaining + n.n
        FROM (
            SELECT d.batch_id, count(*) AS n FROM livewell.dead_job d
            WHERE d.id = ANY (v_born) AND d.batch_id IS NOT NULL
            GROUP BY d.batch_id
        ) n
        WHERE b.id = n.batch_id AND b.ended_at IS NULL;
    END IF;
    DELETE FROM livewell.dead_job d WHERE d.id = ANY (v_born);
    RETURN QUERY
    SELECT cardinality(v_born)::bigint, (cardinality(v_picked) - cardinality(v_born))::bigint;
END
$$;
COMMENT ON FUNCTION livewell.redrive_dead IS
    'Moves dead letters back into the queue; answers how many went and how many stayed because '
    'their key is taken.';
REVOKE ALL ON FUNCTION livewell.redrive_dead FROM PUBLIC;

-- ── queue/functions/operate/sample_queue.sql ──
-- Live jobs by queue and state, and dead letters by queue and reason: counted up to 5,000 rows of
-- each table, estimated from some of its pages beyond.
--
-- Called by: state_queue, at most every ten seconds.
-- Index:     job_pkey, dead_job_pkey: the count stops at its bound, and after a drain the empty
--            pages are not read.
-- Cost:      5,000 rows and about 1,000 pages of each table at most, whatever they hold: 15 ms.
--            With 1,000,000 live jobs an estimate is right within about 6 %, nine times of ten.
-- REPEATABLE: the same pages each time, so that they are in memory, and a graph of the estimate
-- does not jump when nothing has changed.
-- Why pages and not reltuples: statistics are as old as the last vacuum, and a backlog that came in
-- the last minute is what one looks for.
CREATE OR REPLACE FUNCTION livewell.sample_queue()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    c_rows      CONSTANT integer := 5000;
    c_pages     CONSTANT integer := 1000;
    v_exact     boolean := true;
    v_n         bigint;
    v_pages     record;
    v_by_state  jsonb;
    v_by_reason jsonb;
BEGIN
    SELECT jsonb_agg(jsonb_build_array(g.queue, g.state, g.n)), sum(g.n) INTO v_by_state, v_n
    FROM (
        SELECT x.queue, x.state, count(*) AS n
        FROM (SELECT j.queue, j.state FROM livewell.job j ORDER BY j.id LIMIT c_rows) x
        GROUP BY x.queue, x.state
    ) g;
    IF v_n = c_rows THEN
        v_exact := false;
        SELECT * INTO v_pages FROM livewell.table_pages('livewell.job', c_pages);
        SELECT jsonb_agg(jsonb_build_array(g.queue, g.state, round(g.n * 100 / v_pages.percent)))
        INTO v_by_state
        FROM (
            SELECT j.queue, j.state, count(*) AS n
            FROM livewell.job j TABLESAMPLE SYSTEM (v_pages.percent) REPEATABLE (7601)
            GROUP BY j.queue, j.state
        ) g;
    END IF;
    SELECT jsonb_agg(jsonb_build_array(g.queue, g.reason, g.n)), sum(g.n) INTO v_by_reason, v_n
    FROM (
        SELECT x.queue, x.reason, count(*) AS n
        FROM (SELECT d.queue, d.reason FROM livewell.dead_job d ORDER BY d.id LIMIT c_rows) x
        GROUP BY x.queue, x.reason
    ) g;
    IF v_n = c_rows THEN
        v_exact := false;
        SELECT * INTO v_pages FROM livewell.table_pages('livewell.dead_job', c_pages);
        SELECT jsonb_agg(jsonb_build_array(g.queue, g.reason, round(g.n * 100 / v_pages.percent)))
        INTO v_by_reason
        FROM (
            SELECT d.queue, d.reason, count(*) AS n
            FROM livewell.dead_job d TABLESAMPLE SYSTEM (v_pages.percent) REPEATABLE (7601)
            GROUP BY d.queue, d.reason
        ) g;
    END IF;
    RETURN jsonb_build_object(
        'how', CASE WHEN v_exact THEN 'exact' ELSE 'estimated' END,
        'jobs', coalesce(v_by_state, '[]'), 'dead', coalesce(v_by_reason, '[]')
    );
END
$$;
COMMENT ON FUNCTION livewell.sample_queue IS
    'Jobs by queue and state and dead letters by reason, from a bounded number of rows and pages.';
REVOKE ALL ON FUNCTION livewell.sample_queue FROM PUBLIC;

-- ── queue/functions/operate/show_job.sql ──
-- Everything known about one job, wherever it is now: live, dead letter or history.
--
-- Called by: show_progress; CLI `jobs show`, clients waiting for a result.
CREATE OR REPLACE FUNCTION livewell.show_job(p_id bigint)
RETURNS TABLE (
    id bigint, queue text, kind text, state text, lane smallint, priority smallint,
    attempt smallint, max_attempts smallint, lost smallint, progress smallint, progress_note text,
    worker text, run_at timestamptz, created_at timestamptz, started_at timestamptz,
    finished_at timestamptz, cancel_requested boolean, unique_key text, group_key text, reason text,
    error text, payload text
)
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT j.id, j.queue, j.kind, j.state::text, j.lane, j.priority, j.attempt, j.max_attempts,
        j.lost, j.progress, j.progress_note, w.name, j.run_at, j.created_at, j.started_at,
        NULL::timestamptz, j.cancel_requested, j.unique_key, j.group_key, NULL::text, j.last_error,
        j.payload::text
    FROM livewell.job j
    LEFT JOIN livewell.worker w ON w.id = j.worker
    WHERE j.id = p_id
    UNION ALL
    SELECT d.id, d.queue, d.kind, 'failed', d.lane, d.priority, d.attempt, d.max_attempts, d.lost,
        NULL, NULL, NULL, NULL, d.created_at, NULL, d.died_at, false, d.unique_key, d.group_key,
        d.reason, d.error, d.payload::text
    FROM livewell.dead_job d
    WHERE d.id = p_id
    UNION ALL
    SELECT h.id, h.queue, h.kind, h.outcome::text, NULL, NULL, h.attempt, NULL, NULL,
        CASE WHEN h.outcome = 'succeeded' THEN 100 END, NULL, NULL, NULL, h.created_at,
        h.started_at, h.finished_at, h.outcome = 'cancelled', NULL, NULL, NULL, nullif(h.note, ''),
        NULL
    FROM livewell.job_history h
    WHERE h.id = p_id
    LIMIT 1
$$;
COMMENT ON FUNCTION livewell.show_job IS
    'One job with its state: delayed, held, ready, running, succeeded, cancelled or failed.';
REVOKE ALL ON FUNCTION livewell.show_job FROM PUBLIC;

-- ── queue/functions/operate/show_progress.sql ──
-- How far some jobs are, wherever each is now: live, dead letter or history. Without payloads.
--
-- Called by: queue/progress.py, twice a second for all jobs that somebody follows.
-- Index:     primary keys of job and dead_job; job_history by id, partition by partition, for those
--            that have just ended.
CREATE OR REPLACE FUNCTION livewell.show_progress(p_ids bigint[])
RETURNS TABLE (
    id bigint, queue text, kind text, state text, attempt smallint, max_attempts smallint,
    progress smallint, progress_note text, reason text, created_at timestamptz,
    started_at timestamptz, finished_at timestamptz
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    IF coalesce(cardinality(p_ids), 0) > 1000 THEN
        RAISE EXCEPTION '% jobs: at most 1000 in one call', cardinality(p_ids)
            USING ERRCODE = 'LW003';
    END IF;
    RETURN QUERY
    SELECT s.id, s.queue, s.kind, s.state, s.attempt, s.max_attempts, s.progress, s.progress_note,
        s.reason, s.created_at, s.started_at, s.finished_at
    FROM unnest(p_ids) AS g (id)
    CROSS JOIN LATERAL livewell.show_job(g.id) AS s;
END
$$;
COMMENT ON FUNCTION livewell.show_progress IS
    'State and progress of some jobs, without what is in them.';
REVOKE ALL ON FUNCTION livewell.show_progress FROM PUBLIC;

-- ── queue/functions/operate/show_traceback.sql ──
-- The traceback of a job's last failure, NULL where there is none.
--
-- Called by: admin.job(), beside show_job: the columns of that one cannot change while workers of
--            the version before call it.
-- Index:     primary keys.
CREATE OR REPLACE FUNCTION livewell.show_traceback(p_id bigint)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT j.last_traceback FROM livewell.job j WHERE j.id = p_id
    UNION ALL
    SELECT d.traceback FROM livewell.dead_job d WHERE d.id = p_id
    LIMIT 1
$$;
COMMENT ON FUNCTION livewell.show_traceback IS
    'The traceback of the last failure of a live job or a dead letter: redacted, at most 8 kB.';
REVOKE ALL ON FUNCTION livewell.show_traceback FROM PUBLIC;

-- ── queue/functions/operate/state_limits.sql ──
-- The state of the limiters, by credential: rate and budget used, when the budget ends at the pace
-- of the last day, breaker, and how calls went in the last ten minutes.
--
-- Called by: system_state. Exact. In queue, not in limits, as list_limiters is: what is reserved is
--            known from what runs.
-- Index:     limiter_usage_pkey, limiter_calls_pkey, and those of list_limiters.
CREATE OR REPLACE FUNCTION livewell.state_limits()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object(
        'how', 'exact',
        'limiters', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', l.name, 'credential', l.credential, 'active', l.active,
                        'rate_calls', l.rate_calls, 'rate_seconds', l.rate_seconds,
                        'spent', l.spent, 'budget_unit', l.budget_unit,
                        'budget_units', l.budget_units, 'used', l.used, 'reserved', l.reserved,
                        'budget_stop', m.budget_stop,
                        'budget_background_stop', m.budget_background_stop, 'used_day', d.units,
                        'budget_left_seconds', CASE
                            WHEN d.units > 0
                                THEN (
                                    greatest(
                                        m.budget_units * m.budget_stop - l.used - l.reserved, 0
                                    ) / d.units * 86400
                                )::float8
                        END,
                        'running', l.running, 'concurrency', l.concurrency, 'breaker', l.breaker,
                        'open_until', c.open_until,
                        'quiet_until', CASE WHEN c.quiet_until > v_now THEN c.quiet_until END,
                        'learnt_calls', c.learnt_calls, 'calls_now', l.calls_now,
                        'waits_for', l.reason, 'wait_seconds', l.wait_seconds,
                        'calls', coalesce(k.calls, 0), 'failures', coalesce(k.failures, 0)
                    ) ORDER BY l.name,
                    l.credential
                ),
                '[]'
            )
            FROM livewell.list_limiters() AS l
            JOIN livewell.limiter m ON m.name = l.name
            JOIN livewell.limiter_credential c ON c.limiter = l.name AND c.name = l.credential
            LEFT JOIN LATERAL (
                SELECT sum(u.units) AS units FROM livewell.limiter_usage u
                WHERE u.limiter = l.name
                    AND u.credential = l.credential
                    AND u.since > v_now - interval '1 day'
            ) d ON true
            LEFT JOIN LATERAL (
                SELECT sum(x.calls) AS calls, sum(x.failures) AS failures
                FROM livewell.limiter_calls x
                WHERE x.limiter = l.name
                    AND x.credential = l.credential
                    AND x.since > v_now - interval '10 minutes'
            ) k ON true
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_limits IS 'Limiters by credential, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_limits FROM PUBLIC;

-- ── queue/functions/operate/state_queue.sql ──
-- The state of the queue: what waits where and since when, who works, how fast, what died.
--
-- Called by: system_state. Nothing is counted row by row that can be many: ready, delayed, held and
--            dead come from a sample that is at most ten seconds old (sample_age_seconds says how
--            old, and how says whether it was counted or estimated); running, the heads of the
--            lines, what is overdue (up to 10,000), workers and pace are exact.
-- Steps:     the sample, what runs, then list_queue_states and list_worker_states from both.
-- Index:     job_worker_idx, job_delayed_idx.
CREATE OR REPLACE FUNCTION livewell.state_queue()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_sample    record;
    v_running   jsonb;
    v_queues    jsonb;
    v_workers   jsonb;
BEGIN
    SELECT * INTO v_sample FROM livewell.find_sample('queue', v_now);
    IF v_sample.wanted THEN
        v_sample.value := livewell.sample_queue();
        v_sample.at := v_now;
        PERFORM livewell.keep_sample('queue', v_now, v_sample.value);
    END IF;

    -- Bounded by the slots of the fleet, and by this.
    SELECT coalesce(jsonb_agg(jsonb_build_array(r.queue, r.worker, r.n)), '[]') INTO v_running
    FROM (
        SELECT x.queue, x.worker, count(*) AS n
        FROM (
            SELECT j.queue, j.worker FROM livewell.job j
            WHERE j.state = 'running' AND j.worker > 0
            LIMIT 100000
        ) x
        GROUP BY x.queue, x.worker
    ) r;

    v_queues := livewell.list_queue_states(v_sample.value, v_running, v_now);
    v_workers := livewell.list_worker_states(v_running, v_now);
    RETURN jsonb_build_object(
        'how', v_sample.value ->> 'how', 'sampled_at', v_sample.at,
        'sample_age_seconds', extract(epoch FROM v_now - v_sample.at)::float8, 'queues', v_queues,
        'workers', v_workers,
        -- Q12: a delayed job past its time by a minute is stuck.
        'overdue_delayed', (
            SELECT count(*)
            FROM (
                SELECT FROM livewell.job j
                WHERE j.state = 'delayed' AND j.run_at < v_now - interval '1 minute'
                LIMIT 10000
            ) o
        ),
        'history_rows', (
            SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint
            FROM pg_catalog.pg_inherits i
            JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'livewell.job_history'::regclass
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_queue IS
    'Queues, workers, pace and dead letters, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_queue FROM PUBLIC;

-- ── queue/functions/permits/book_call.sql ──
-- Book what a call used that was made with a permit of take_call.
--
-- Called by: `livewell types sample`, whatever came of the call; sent again after a lost answer it
--            books nothing twice (once per fence).
CREATE OR REPLACE FUNCTION livewell.book_call(
    p_limiter text, p_credential text, p_fence bigint, p_units bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM FROM livewell.limiter l WHERE l.name = p_limiter FOR NO KEY UPDATE;
    -- 0: nothing came, so it may still be on its way.
    PERFORM livewell.end_calls(p_limiter, p_credential, ARRAY[p_fence], ARRAY[p_units > 0]);
    -- A kind of its own: what people try out teaches the estimates of jobs nothing.
    PERFORM livewell.book_usage(
        p_limiter, p_credential, ARRAY[p_fence], ARRAY[p_units], ARRAY['livewell.sample'],
        ARRAY[true]
    );
END
$$;
COMMENT ON FUNCTION livewell.book_call IS 'Books the units of one call that take_call permitted.';
REVOKE ALL ON FUNCTION livewell.book_call FROM PUBLIC;

-- ── queue/functions/permits/permit_room.sql ──
-- What a limiter has left for one more call of a job that runs, under the job's own credential. No
-- row: the credential is not in use any more.
--
-- Called by: take_permits, with its planner settings and the limiter's row, which it has locked in
--            an earlier statement. p_call: the fence of the job's call. p_estimate: what one call
--            uses.
-- Index:     job_limited_idx; see limiter_room.
CREATE OR REPLACE FUNCTION livewell.permit_room(
    p_limiter livewell.limiter,
    p_credential text,
    p_call bigint,
    p_estimate float8,
    p_now timestamptz
)
RETURNS TABLE (
    calls integer, background_calls integer, probe boolean, wait_seconds float8, reason text
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_running   text[];
    v_reserved  jsonb;
BEGIN
    v_running := ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = p_limiter.name);
    SELECT coalesce(jsonb_object_agg(r.credential, r.units), '{}') INTO v_reserved
    FROM (
        SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
        WHERE j.queue = ANY (v_running) AND j.credential IS NOT NULL
        GROUP BY j.credential
    ) r;
    RETURN QUERY
    SELECT r.calls, r.background_calls, r.probe, r.wait_seconds, r.reason
    FROM livewell.limiter_room(
        p_limiter, p_now, v_reserved, p_estimate,
        ARRAY(
            SELECT c.name FROM livewell.limiter_credential c
            -- the probe itself may go on
            WHERE c.limiter = p_limiter.name
                AND c.probe_fence IS NOT NULL
                AND c.probe_fence <> p_call
                AND EXISTS (
                    SELECT FROM livewell.job j
                    WHERE j.queue = ANY (v_running)
                        AND j.credential IS NOT NULL
                        AND j.fence = c.probe_fence
                )
        )
    ) AS r
    WHERE r.credential = p_credential;
END
$$;
COMMENT ON FUNCTION livewell.permit_room IS
    'What a limiter has left for a job that runs and wants more calls.';
REVOKE ALL ON FUNCTION livewell.permit_room FROM PUBLIC;

-- ── queue/functions/permits/report_wall.sql ──
-- A call of this queue has met a bandwidth wall: open the breaker of its credential, before the
-- job's own end can say so.
--
-- Called by: a worker that has seen a wall, before it claims or renews (limits/walls.py). The end
--            of the job says it again, which then moves nothing.
CREATE OR REPLACE FUNCTION livewell.report_wall(p_queue text, p_credential text, p_fence bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_limiter   text := (SELECT q.limiter FROM livewell.queue q WHERE q.name = p_queue);
BEGIN
    PERFORM FROM livewell.limiter l WHERE l.name = v_limiter FOR NO KEY UPDATE;
    IF FOUND THEN
        PERFORM livewell.book_calls(
            v_limiter, p_credential, ARRAY[p_fence], ARRAY['wall'], s.last_value + 16383
        )
        FROM livewell.fence_seq s;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.report_wall IS
    'Opens the breaker for a bandwidth wall that a worker has met.';
REVOKE ALL ON FUNCTION livewell.report_wall FROM PUBLIC;

-- ── queue/functions/permits/restart_wait.sql ──
-- For how long at most a limiter grants nothing because the server has just been started: until
-- every worker of its queues that may be alive has renewed since, one lease at most. NULL: no wait.
--
-- Called by: limiter_room, before every grant.
-- Why: a worker that met a wall while the database was away could not say so. It reports what it
--      knows before it renews, so once all have renewed, all is known. Without it 101 calls were
--      made in a silence of 30 s.
-- A worker whose row is left over from before may be alive: an outage can be longer than a lease.
-- After one lease it had its time. With no such row (a fresh start, workers that stopped in order)
-- nobody waits.
-- No lease is longer than an hour, so the table of workers is read only in the first hour of a
-- server. A clock that is behind the server's start (virtual time) never waits.
CREATE OR REPLACE FUNCTION livewell.restart_wait(p_limiter text, p_now timestamptz)
RETURNS float8
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_started pg_catalog.timestamptz := livewell.server_started();
BEGIN
    IF p_now < v_started OR p_now >= v_started + interval '1 hour' THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT extract(epoch FROM max(v_started + w.lease) - p_now) FROM livewell.worker w
        WHERE w.renewed_at < v_started
            AND v_started + w.lease > p_now
            AND EXISTS (
                SELECT FROM livewell.queue q
                WHERE q.limiter = p_limiter AND livewell.works_queue(w.queues, q.name)
            )
    );
END
$$;
COMMENT ON FUNCTION livewell.restart_wait IS
    'Seconds for which a limiter waits at most for its workers to report after a restart of the '
    'server; NULL if it does not.';
REVOKE ALL ON FUNCTION livewell.restart_wait FROM PUBLIC;

-- ── queue/functions/permits/server_started.sql ──
-- When this server began to serve: its start, or its promotion if that was later.
--
-- Called by: restart_wait. A function of its own so that tests can put another instant in its
--            place.
CREATE OR REPLACE FUNCTION livewell.server_started()
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT greatest(
        pg_catalog.pg_postmaster_start_time(),
        to_timestamp(pg_catalog.pg_sequence_last_value('livewell.promoted_seq') / 1000.0)
    )
$$;
COMMENT ON FUNCTION livewell.server_started IS 'When this server was started, or promoted.';
REVOKE ALL ON FUNCTION livewell.server_started FROM PUBLIC;

-- ── queue/functions/permits/take_call.sql ──
-- Take one permit of a limiter outside any job, for a call that a person makes: as if it were a job
-- of lane 0, or say why not and for how long.
--
-- Called by: `livewell types sample`. What the call used is booked by book_call, under the fence
--            that is given here.
-- Locks:     the limiter's row first; room is read by statements that begin after that.
-- A breaker that is not closed lets nobody through here: its one probe belongs to a job, whose end
-- frees it.
CREATE OR REPLACE FUNCTION livewell.take_call(p_limiter text)
RETURNS TABLE (
    credential text, fence bigint, permit_seconds float8, wait_seconds float8, reason text
)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_variable
DECLARE
    v_begun     timestamptz := livewell.now();          -- a stopwatch for the lock
    v_now       timestamptz;
    v_limiter   livewell.limiter;
    v_reserved  jsonb;
    v_c         record;
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_limiter FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'limiter "%" is not declared', p_limiter USING ERRCODE = 'LW006';
    END IF;
    v_now := livewell.now();
    SELECT coalesce(jsonb_object_agg(r.credential, r.units), '{}') INTO v_reserved
    FROM (
        SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
        WHERE j.queue = ANY (ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = p_limiter))
            AND j.credential IS NOT NULL
        GROUP BY j.credential
    ) r;
    FOR v_c IN
        SELECT r.*
        FROM livewell.limiter_room(
            v_limiter, v_now, v_reserved, v_limiter.estimate_units, '{}'
        ) AS r
        ORDER BY (CASE WHEN r.probe THEN 0 ELSE r.calls END) DESC, r.wait_seconds LIMIT 1
    LOOP
        wait_seconds := v_c.wait_seconds;
        reason := CASE WHEN v_c.probe THEN 'probe' ELSE v_c.reason END;
        IF v_c.calls > 0 AND NOT v_c.probe THEN
            credential := v_c.credential;
            IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
                'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
            )::bit(32)::bigint
            THEN
                PERFORM livewell.raise_fences();       -- a failover
            END IF;
            fence := nextval('livewell.fence_seq');
            permit_seconds := v_limiter.permit_seconds
                + greatest(extract(epoch FROM v_now - v_begun), 0);
            wait_seconds := NULL;
            reason := NULL;
            PERFORM livewell.grant_calls(v_limiter, credential, v_now, 1, NULL, ARRAY[fence]);
        END IF;
    END LOOP;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.take_call IS
    'Takes one permit of a limiter for a call outside any job.';
REVOKE ALL ON FUNCTION livewell.take_call FROM PUBLIC;

-- ── queue/functions/permits/take_permits.sql ──
-- More permits for a job that is running: it makes several calls.
--
-- Called by: job.permit(n).
-- Steps:     lock the job, then its limiter; end_calls for calls that were answered; permit_room;
--            grant_calls.
-- The job's row is locked before the limiter's, as whoever ends the job does: the other way round
-- the two deadlock.
-- p_answered: every call that the job has made so far was answered; they need not be counted as in
--             flight any longer. Not said, they are until the job ends, or until they can no longer
--             arrive.
-- Answer:    granted; or wait, with why and for how long; fenced, if the job is not ours any more;
--            or refused, if so many can never be had at once.
CREATE OR REPLACE FUNCTION livewell.take_permits(
    p_worker bigint, p_id bigint, p_fence bigint, p_calls integer, p_answered boolean DEFAULT false
)
RETURNS TABLE (
    answer text, reason text, wait_seconds float8, permit_seconds float8, calls_max integer
)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_begun     timestamptz := livewell.now();          -- a stopwatch for the locks
    v_waited    float8;
    v_now       timestamptz;
    v_limiter   livewell.limiter;
    v_job       record;
    v_estimate  float8;
    v_most      integer;
    v_room      record;
BEGIN
    SELECT j.queue, j.kind, j.lane, j.credential, j.call_fence, q.limiter INTO v_job
    FROM livewell.job j
    JOIN livewell.queue q ON q.name = j.queue
    WHERE j.id = p_id AND j.fence = p_fence AND j.worker = p_worker
    FOR NO KEY UPDATE OF j;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'fenced', NULL::text, NULL::float8, NULL::float8, NULL::integer;
        RETURN;
    END IF;
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = v_job.limiter FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        -- no limiter, no permits
        RETURN QUERY SELECT 'granted', NULL::text, NULL::float8, NULL::float8, NULL::integer;
        RETURN;
    END IF;
    v_now := livewell.now();
    v_waited := greatest(extract(epoch FROM v_now - v_begun), 0);
    -- Never more than what the upstream itself has stated.
    v_most := (
        SELECT least(v_limiter.rate_calls, c.learnt_calls) FROM livewell.limiter_credential c
        WHERE c.limiter = v_limiter.name AND c.name = v_job.credential
    );
    v_most := least(
        v_limiter.burst,
        CASE v_job.lane
            WHEN 0 THEN v_most
            ELSE greatest(floor(v_most * (1 - v_limiter.reserve)), 1)
        END
    );
    IF v_limiter.rate_calls IS NOT NULL AND p_calls > v_most THEN
        RETURN QUERY SELECT 'refused', 'rate', NULL::float8, NULL::float8, v_most;
        RETURN;
    END IF;
    IF p_answered THEN
        PERFORM livewell.end_calls(
            v_limiter.name, v_job.credential, ARRAY[v_job.call_fence], ARRAY[true]
        );
    END IF;
    v_estimate := coalesce(
        (
            SELECT e.units FROM livewell.limiter_estimate e
            WHERE e.limiter = v_limiter.name AND e.kind = v_job.kind
        ),
        v_limiter.estimate_units
    );
    SELECT * INTO v_room
    FROM livewell.permit_room(
        v_limiter, v_job.credential, v_job.call_fence, v_estimate, v_now
    );
    IF NOT FOUND
        OR (
            CASE v_job.lane WHEN 0 THEN v_room.calls ELSE v_room.background_calls END
        ) < (CASE WHEN v_room.probe THEN 1 ELSE p_calls END)
    THEN
        RETURN QUERY SELECT 'wait', v_room.reason, v_room.wait_seconds, NULL::float8, NULL::integer;
        RETURN;
    END IF;
    PERFORM livewell.grant_calls(
        v_limiter, v_job.credential, v_now, p_calls, NULL, ARRAY[v_job.call_fence]
    );
    IF v_limiter.budget_units IS NOT NULL THEN
        UPDATE livewell.job j
        SET reserved_units = coalesce(j.reserved_units, 0) + CASE v_limiter.budget_unit
            WHEN 'calls' THEN p_calls
            ELSE ceil(v_estimate)::bigint * p_calls
        END
        WHERE j.id = p_id AND j.fence = p_fence AND j.worker = p_worker;
    END IF;
    RETURN QUERY
    SELECT 'granted', NULL::text, NULL::float8, v_limiter.permit_seconds + v_waited, NULL::integer;
END
$$;
COMMENT ON FUNCTION livewell.take_permits IS
    'Gives a running job more permits, or says how long to wait for them.';
REVOKE ALL ON FUNCTION livewell.take_permits FROM PUBLIC;

-- ── queue/functions/upkeep/add_stats.sql ──
-- Add what a worker counted since its last report.
--
-- Called by: worker, every 10 s. Rows in key order, so two workers that add to the same minute do
--            not deadlock.
CREATE OR REPLACE FUNCTION livewell.add_stats(
    p_queues text[], p_kinds text[], p_outcomes text[], p_ns bigint[], p_ms bigint[]
)
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
    ON CONFLICT (minute, queue, kind, outcome)
    DO UPDATE SET n = s.n + excluded.n, ms = s.ms + excluded.ms;
END
$$;
COMMENT ON FUNCTION livewell.add_stats IS 'Adds counts and milliseconds to the current minute.';
REVOKE ALL ON FUNCTION livewell.add_stats FROM PUBLIC;

-- ── queue/functions/upkeep/drop_history_day.sql ──
-- Drop the oldest history partition that is wholly older than p_keep_days. At most one per call.
--
-- Called by: worker, hourly, until it answers NULL.
-- SECURITY DEFINER: dropping a partition needs the owner; the only input is a number, and fewer
-- than 1 day is refused.
-- lock_timeout: the drop needs a moment alone with the parent. If it cannot have it within 100 ms
-- it gives up (55P03) and the caller tries later; nobody who wants to finish a job waits longer
-- than that because of us.
-- Types are qualified: search_path = '' still looks into pg_temp first for types, and a caller's
-- own domain would run as us.
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
        RAISE EXCEPTION 'history is kept at least 1 day, not %', p_keep_days
            USING ERRCODE = 'LW003';
    END IF;
    SELECT c.relname INTO v_name
    FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'livewell.job_history'::pg_catalog.regclass
        AND c.relname < 'job_history_' || to_char(v_today - p_keep_days, 'YYYYMMDD')
    ORDER BY c.relname LIMIT 1;
    IF FOUND THEN
        EXECUTE format('DROP TABLE livewell.%I', v_name);
    END IF;
    RETURN v_name;
END
$$;
COMMENT ON FUNCTION livewell.drop_history_day IS
    'Drops one expired daily partition of job_history; answers its name, or NULL when none is '
    'left.';
REVOKE ALL ON FUNCTION livewell.drop_history_day FROM PUBLIC;

-- ── queue/functions/upkeep/ensure_history_days.sql ──
-- Make the history partitions of today … + p_ahead days, where they are missing.
--
-- Called by: migrate, worker start, and hourly.
-- SECURITY DEFINER: workers insert history but do not own it; making a day's partition needs the
-- owner. Its only input is a bounded number.
-- CREATE LIKE + ATTACH takes SHARE UPDATE EXCLUSIVE on the parent, which no insert waits for. No
-- DEFAULT partition: it would block making days.
-- Types are qualified: search_path = '' still looks into pg_temp first for types, and a caller's
-- own domain would run as us.
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
    FOR v_day IN
        SELECT v_today + i FROM generate_series(0, least(greatest(p_ahead, 1), 60)) AS i
    LOOP
        v_name := 'job_history_' || to_char(v_day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass('livewell.' || v_name) IS NOT NULL;
        -- One maker at a time, of all days: two with a day each would wait for each other's parent,
        -- and one of them in vain. Whoever comes second leaves it to the first.
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(hashtextextended('livewell.job_history', 0))
            OR to_regclass('livewell.' || v_name) IS NOT NULL;
        EXECUTE format(
            'CREATE TABLE livewell.%I (LIKE livewell.job_history INCLUDING DEFAULTS)', v_name
        );
        EXECUTE format(
            'COMMENT ON TABLE livewell.%I IS %L', v_name, 'Jobs finished on ' || v_day || ' (UTC).'
        );
        EXECUTE format(
            'ALTER TABLE livewell.job_history ATTACH PARTITION livewell.%I '
            'FOR VALUES FROM (%L) TO (%L)',
            v_name, v_day::pg_catalog.timestamptz, (v_day + 1)::pg_catalog.timestamptz
        );
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END
$$;
COMMENT ON FUNCTION livewell.ensure_history_days IS
    'Creates missing daily partitions of job_history; answers how many it made.';
REVOKE ALL ON FUNCTION livewell.ensure_history_days FROM PUBLIC;

-- ── queue/functions/upkeep/maintain.sql ──
-- One turn of the queue's own upkeep: promote what is due, recover what is lost. At most once per
-- interval for the whole fleet.
--
-- Called by: any worker, every second. Whoever finds the tick due does it; a locked or early tick
--            answers ran = false at once.
CREATE OR REPLACE FUNCTION livewell.maintain(
    p_worker bigint, p_interval_seconds float8, p_grace_seconds float8, p_limit integer DEFAULT 5000
)
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
        INSERT INTO livewell.tick (name, due_at)
        SELECT 'maintain', '-infinity'
        WHERE NOT EXISTS (SELECT FROM livewell.tick t WHERE t.name = 'maintain')
        ON CONFLICT DO NOTHING;
        RETURN QUERY SELECT false, 0, 0, 0, 0;
        RETURN;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.tick t
    SET due_at = v_now + p_interval_seconds * interval '1 second', last_at = v_now,
        last_worker = p_worker, n = t.n + 1
    WHERE t.name = 'maintain' AND t.due_at <= v_now;
    IF NOT FOUND THEN
        RETURN QUERY SELECT false, 0, 0, 0, 0;
        RETURN;
    END IF;
    v_promoted := livewell.promote_jobs(p_limit) + livewell.promote_held(p_limit);
    RETURN QUERY
    SELECT true, v_promoted, r.buried, r.lost, r.overdue
    FROM livewell.recover_jobs(p_worker, p_limit, p_grace_seconds) r;
END
$$;
COMMENT ON FUNCTION livewell.maintain IS
    'Promotes due jobs and recovers lost ones, once per interval for all workers together.';
REVOKE ALL ON FUNCTION livewell.maintain FROM PUBLIC;

-- ── queue/functions/upkeep/promote_held.sql ──
-- Find held jobs that nothing holds any more: enqueued while the job before them was just ending,
-- or freed by a raised limit.
--
-- Called by: maintain(), every second, by any worker.
-- Index:     job_unique_held_idx, job_group_idx, both walked in pages from where the last look
--            ended.
-- A key that looks free may have been taken by a client who has not committed. Letting go would
-- wait for that client, for as long as it likes, and then fail with everything else that maintain
-- does; so we hardly wait, and leave that one held: it is behind the client's job now, or its turn
-- comes with the next look.
CREATE OR REPLACE FUNCTION livewell.promote_held(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
SET enable_sort = off
SET lock_timeout = '10ms'
AS $$
DECLARE
    v_cursor    text[];
    v_queues    text[];
    v_keys      text[];
    v_limits    integer[];
    v_n         integer := 0;
    v_queue     text;
    v_key       text;
    v_taken     integer := 0;           -- keys that somebody has just taken
BEGIN
    -- locked by maintain
    SELECT t.cursor INTO v_cursor FROM livewell.tick t WHERE t.name = 'maintain';
    v_cursor := coalesce(v_cursor, ARRAY['', '', '', '']);

    SELECT array_agg(h.queue), array_agg(h.unique_key) INTO v_queues, v_keys
    FROM (
        SELECT j.queue, j.unique_key FROM livewell.job j
        WHERE j.unique_key IS NOT NULL
            AND j.held_by = 'k'
            AND (j.queue, j.unique_key) > (v_cursor[1], v_cursor[2])
        ORDER BY j.queue, j.unique_key LIMIT p_limit
    ) h;
    IF v_queues IS NULL THEN
        v_cursor[1] := '';
        v_cursor[2] := '';
    ELSE
        v_cursor[1] := v_queues[cardinality(v_queues)];
        v_cursor[2] := v_keys[cardinality(v_keys)];
        <<page>>
        BEGIN
            v_n := livewell.release_held(
                v_queues, v_keys, array_fill(NULL::text, ARRAY[cardinality(v_queues)])
            );
        EXCEPTION WHEN unique_violation OR lock_not_available THEN
            FOR v_i IN 1 .. cardinality(v_queues) LOOP
                <<one>>
                BEGIN
                    v_n := v_n + livewell.release_held(
                        v_queues[v_i:v_i], v_keys[v_i:v_i], ARRAY[NULL::text]
                    );
                EXCEPTION WHEN unique_violation OR lock_not_available THEN
                    v_taken := v_taken + 1;
                END one;
                EXIT WHEN v_taken = 20;     -- at most a fifth of a second
            END LOOP;
        END page;
    END IF;

    -- Groups one by one, by skipping through the index: a group with 200,000 held jobs is one step.
    v_queue := v_cursor[3];
    v_key := v_cursor[4];
    FOR v_step IN 1 .. least(p_limit, 1000) LOOP
        SELECT j.queue, j.group_key INTO v_queue, v_key FROM livewell.job j
        WHERE j.group_key IS NOT NULL AND (j.queue, j.group_key) > (v_queue, v_key)
        ORDER BY j.queue, j.group_key LIMIT 1;
        EXIT WHEN NOT FOUND;
        CONTINUE WHEN NOT EXISTS (
            SELECT FROM livewell.job j
            WHERE j.queue = v_queue AND j.group_key = v_key AND j.state = 'held' AND j.held_by = 'g'
        );
        v_limits := ARRAY(
            SELECT least(q.group_limit, l.per_key) - (
                SELECT count(*)
                FROM (
                    SELECT FROM livewell.job j
                    WHERE j.queue = v_queue
                        AND j.group_key = v_key
                        AND j.state IN ('ready', 'running')
                    LIMIT least(q.group_limit, l.per_key)
                ) a
            )
            FROM livewell.queue q
            LEFT JOIN livewell.limiter l ON l.name = q.limiter
            WHERE q.name = v_queue
        );
        -- No limit any more: a thousand at a time.
        IF coalesce(v_limits[1], 1000) > 0 THEN
            v_n := v_n + livewell.release_held(
                array_fill(v_queue, ARRAY[coalesce(v_limits[1], 1000)]),
                array_fill(NULL::text, ARRAY[coalesce(v_limits[1], 1000)]),
                array_fill(v_key, ARRAY[coalesce(v_limits[1], 1000)])
            );
        END IF;
    END LOOP;
    v_cursor[3] := coalesce(v_queue, '');
    v_cursor[4] := coalesce(v_key, '');
    UPDATE livewell.tick t
    SET cursor = v_cursor
    WHERE t.name = 'maintain' AND t.cursor IS DISTINCT FROM v_cursor;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.promote_held IS
    'Makes ready a page of held jobs whose key or group is free; answers how many.';
REVOKE ALL ON FUNCTION livewell.promote_held FROM PUBLIC;

-- ── queue/functions/upkeep/promote_jobs.sql ──
-- Make delayed jobs ready whose time has come.
--
-- Called by: maintain(), every second, by any worker.
-- Index:     job_delayed_idx.
-- The rank counts from run_at, so a job that waited for its time is not behind everything enqueued
-- meanwhile.
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
    UPDATE livewell.job j
    SET state = 'ready', rank = (extract(epoch FROM j.run_at) * 1000)::bigint - j.priority * 60000
    WHERE j.id = ANY (
        ARRAY(
            SELECT d.id FROM livewell.job d
            WHERE d.state = 'delayed' AND d.run_at <= v_now
            ORDER BY d.run_at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.promote_jobs IS 'Turns due delayed jobs ready; answers how many.';
REVOKE ALL ON FUNCTION livewell.promote_jobs FROM PUBLIC;

-- ── queue/functions/upkeep/prune_queue.sql ──
-- Delete dead letters, statistics and ended batches past their time, a bounded page per call.
--
-- Called by: worker, hourly, until it answers 0.
-- Index:     dead_job_died_idx, stat_pkey, batch_ended_idx.
CREATE OR REPLACE FUNCTION livewell.prune_queue(
    p_dead_days integer, p_stat_days integer, p_limit integer
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_dead  integer;
    v_stat  integer;
    v_batch integer;
BEGIN
    DELETE FROM livewell.dead_job d
    WHERE d.id = ANY (
        ARRAY(
            -- Q7: thirty days at least, whatever the caller says.
            SELECT o.id FROM livewell.dead_job o
            WHERE o.died_at < v_now - greatest(p_dead_days, 30) * interval '1 day'
            ORDER BY o.died_at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_dead = ROW_COUNT;
    DELETE FROM livewell.stat s
    WHERE s.ctid = ANY (
        ARRAY(
            SELECT o.ctid FROM livewell.stat o
            WHERE o.minute < v_now - greatest(p_stat_days, 1) * interval '1 day'
            ORDER BY o.minute LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_stat = ROW_COUNT;
    -- A batch is past with its dead letters: until then they may be redriven.
    DELETE FROM livewell.batch b
    WHERE b.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.batch o
            WHERE o.ended_at < v_now - greatest(p_dead_days, 30) * interval '1 day'
            ORDER BY o.ended_at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_batch = ROW_COUNT;
    RETURN v_dead + v_stat + v_batch;
END
$$;
COMMENT ON FUNCTION livewell.prune_queue IS
    'Removes expired dead letters, statistics and batches; answers how many rows went.';
REVOKE ALL ON FUNCTION livewell.prune_queue FROM PUBLIC;

-- ── queue/functions/upkeep/recover_jobs.sql ──
-- Take back the jobs of workers whose lease has run out, and jobs past their own deadline.
--
-- Called by: maintain(), every second, by any worker.
-- Index:     job_worker_idx (one probe between any two living workers), job_deadline_idx.
-- Why SKIP LOCKED: a row that is being finished right now is not stuck; waiting for it would
-- deadlock with finish_jobs.
-- Why two statements: the first buries (deletes) expired workers; only a new snapshot then sees
-- every claim they committed.
-- Only a steady caller buries: one that has itself renewed without a gap, up to now, for a whole
-- lease (its own and the other's). After an outage everybody is late, and nobody is dead. "Up to
-- now": who wakes just before its lease ends has not yet noticed the gap that made the others late.
CREATE OR REPLACE FUNCTION livewell.recover_jobs(
    p_worker bigint, p_limit integer, p_grace_seconds float8
)
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
    WHERE w.id = p_worker
        AND v_now - w.renewed_at <= w.lease / 3
        AND v_now - w.steady_since >= w.lease;
    IF FOUND THEN
        DELETE FROM livewell.worker w
        WHERE w.id = ANY (
            ARRAY(
                SELECT d.id FROM livewell.worker d
                WHERE d.expires_at < v_now AND d.lease <= v_steady
                ORDER BY d.id FOR UPDATE SKIP LOCKED
            )
        );
        GET DIAGNOSTICS v_buried = ROW_COUNT;
    END IF;

    -- Only between the numbers of living workers: what those have run and finished is still in the
    -- index while somebody holds an old snapshot, and reading past it took half a second of every
    -- second.
    WITH gap AS (
        SELECT coalesce(lag(w.id) OVER (ORDER BY w.id), 0) AS below, w.id AS above
        FROM livewell.worker w
        UNION ALL
        SELECT coalesce(max(w.id), 0), 9223372036854775807 FROM livewell.worker w
    )
    -- Bounded: after an outage a million rows must not be one transaction.
    SELECT array_agg(x.id) INTO v_lost
    FROM (
        SELECT d.id
        FROM gap g
        CROSS JOIN LATERAL (
            SELECT j.id FROM livewell.job j
            WHERE j.state = 'running' AND j.worker > g.below AND j.worker < g.above
            ORDER BY j.worker LIMIT p_limit FOR UPDATE SKIP LOCKED
        ) d
        LIMIT p_limit
    ) x;
    -- One that was claimed anew while we looked, by a worker younger than our look, is locked too:
    -- it is not lost.
    v_lost := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.id = ANY (v_lost)
            AND NOT EXISTS (SELECT FROM livewell.worker w WHERE w.id = j.worker)
    );
    v_n := coalesce(cardinality(v_lost), 0);
    IF v_n > 0 THEN
        PERFORM livewell.settle_jobs(
            v_lost, array_fill('lost'::text, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]),
            array_fill('its worker died or froze while holding it'::text, ARRAY[v_n]),
            array_fill(NULL::float8, ARRAY[v_n])
        );
    END IF;

    v_overdue := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.deadline_at < v_now - p_grace_seconds * interval '1 second'
        ORDER BY j.deadline_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    );
    IF cardinality(v_overdue) > 0 THEN
        PERFORM livewell.settle_jobs(
            v_overdue, array_fill('retry'::text, ARRAY[cardinality(v_overdue)]),
            array_fill(NULL::text, ARRAY[cardinality(v_overdue)]),
            array_fill(
                'ran past its deadline and did not stop'::text, ARRAY[cardinality(v_overdue)]
            ),
            array_fill(NULL::float8, ARRAY[cardinality(v_overdue)])
        );
    END IF;
    RETURN QUERY SELECT v_buried, v_n, cardinality(v_overdue);
END
$$;
COMMENT ON FUNCTION livewell.recover_jobs IS
    'Buries expired workers and takes back the running jobs of buried ones and those past their '
    'deadline.';
REVOKE ALL ON FUNCTION livewell.recover_jobs FROM PUBLIC;

-- ── queue/functions/why/why_apart.sql ──
-- Why a live job is not in line at all: it runs, waits behind another job with its key or for its
-- time, or its queue is paused. NULL: it is in line.
--
-- Called by: why_job, with its planner settings. Index: worker_pkey, job_unique_key_idx.
CREATE OR REPLACE FUNCTION livewell.why_apart(
    p_job livewell.job,
    p_queue livewell.queue,
    p_now timestamptz,
    OUT reason text,
    OUT other_id bigint,
    OUT name text,
    OUT since timestamptz,
    OUT wait_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    IF p_job.state = 'running' THEN
        reason := 'running';
        name := (SELECT w.name FROM livewell.worker w WHERE w.id = p_job.worker);
        since := p_job.started_at;
    ELSIF p_job.held_by = 'k' THEN
        reason := 'held_key';
        other_id := (
            SELECT c.id FROM livewell.job c
            WHERE c.queue = p_job.queue
                AND c.unique_key = p_job.unique_key
                AND c.held_by IS DISTINCT FROM 'k'
        );
        name := p_job.unique_key;
        since := p_job.created_at;
    ELSIF p_job.state = 'delayed' AND p_job.run_at > p_now THEN
        reason := 'delayed';
        name := p_job.last_error;
        since := p_job.run_at;
        wait_seconds := extract(epoch FROM p_job.run_at - p_now);
    ELSIF p_queue.paused_at IS NOT NULL THEN
        reason := 'paused';
        name := p_job.queue;
        since := p_queue.paused_at;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.why_apart IS
    'Why a live job is not in line: it runs, is held behind its key, delayed, or its queue is '
    'paused; NULL if it is in line.';
REVOKE ALL ON FUNCTION livewell.why_apart FROM PUBLIC;

-- ── queue/functions/why/why_ended.sql ──
-- How a job ended that is not in the live table any more: dead, and why; succeeded or cancelled,
-- with its note; unknown, if nothing is left of it.
--
-- Called by: why_job, with its planner settings. Index: dead_job_pkey, the primary key of history.
CREATE OR REPLACE FUNCTION livewell.why_ended(
    p_id bigint,
    OUT reason text,
    OUT name text,
    OUT since timestamptz
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    SELECT x.reason, x.name, x.since INTO reason, name, since
    FROM (
        SELECT 'dead' AS reason, d.reason AS name, d.died_at AS since FROM livewell.dead_job d
        WHERE d.id = p_id
        UNION ALL
        SELECT h.outcome::text, nullif(h.note, ''), h.finished_at FROM livewell.job_history h
        WHERE h.id = p_id
        UNION ALL
        SELECT 'unknown', NULL, NULL
        LIMIT 1
    ) x;
END
$$;
COMMENT ON FUNCTION livewell.why_ended IS
    'How a job ended that is no longer live: dead, succeeded, cancelled or unknown.';
REVOKE ALL ON FUNCTION livewell.why_ended FROM PUBLIC;

-- ── queue/functions/why/why_full.sql ──
-- Which place a job waits for: in its group, with its key under the limiter, in an empty worker, in
-- its queue, under the limiter. NULL: there is room everywhere.
--
-- Called by: why_job, with its planner settings. Index: job_group_idx, job_limited_idx.
-- p_running: the queues that share the limiter.
CREATE OR REPLACE FUNCTION livewell.why_full(
    p_job livewell.job,
    p_queue livewell.queue,
    p_limiter livewell.limiter,
    p_running text[],
    OUT reason text,
    OUT n bigint,
    OUT of_limit bigint,
    OUT other_id bigint,
    OUT name text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_in_group      bigint;
    v_with_key      bigint;
    v_in_queue      bigint;
    v_calls         bigint;
BEGIN
    IF p_job.group_key IS NOT NULL THEN
        SELECT count(*) FILTER (WHERE j.queue = p_job.queue), count(*) INTO v_in_group, v_with_key
        FROM livewell.job j
        WHERE j.queue = ANY (p_running) AND j.group_key = p_job.group_key AND j.state = 'running';
        IF v_in_group >= p_queue.group_limit THEN
            reason := 'held_group';
            n := v_in_group;
            of_limit := p_queue.group_limit;
            other_id := (
                SELECT j.id FROM livewell.job j
                WHERE j.queue = p_job.queue
                    AND j.group_key = p_job.group_key
                    AND j.state = 'running'
                ORDER BY j.rank, j.id LIMIT 1
            );
            name := p_job.group_key;
            RETURN;
        END IF;
        IF v_with_key >= p_limiter.per_key THEN
            reason := 'key_limit';
            n := v_with_key;
            of_limit := p_limiter.per_key;
            other_id := (
                SELECT j.id FROM livewell.job j
                WHERE j.queue = ANY (p_running)
                    AND j.group_key = p_job.group_key
                    AND j.state = 'running'
                ORDER BY j.rank, j.id LIMIT 1
            );
            name := p_job.group_key;
            RETURN;
        END IF;
    END IF;
    IF p_job.lost > 0 THEN
        reason := 'suspect';
        n := p_job.lost;
        of_limit := p_queue.lost_max;
        RETURN;
    END IF;
    SELECT count(*) FILTER (WHERE j.queue = p_job.queue),
        count(DISTINCT (j.worker, j.call_fence))
    INTO v_in_queue, v_calls
    FROM livewell.job j
    WHERE j.queue = ANY (p_running) AND j.credential IS NOT NULL;
    IF v_in_queue >= p_queue.concurrency THEN
        reason := 'queue_limit';
        n := v_in_queue;
        of_limit := p_queue.concurrency;
        name := p_job.queue;
    ELSIF v_calls >= p_limiter.concurrency THEN
        reason := 'concurrency';
        n := v_calls;
        of_limit := p_limiter.concurrency;
        name := p_limiter.name;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.why_full IS
    'Which limit on what runs at once a job waits for; NULL if there is room.';
REVOKE ALL ON FUNCTION livewell.why_full FROM PUBLIC;

-- ── queue/functions/why/why_job.sql ──
-- Why is this job not running? One answer, the first that applies, in the order in which they would
-- have to be overcome (Q15).
--
-- Called by: why_refresh; `livewell jobs why`, clients.
-- Answer:    reason, what it waits for in numbers and names, and the seconds until it is worth
--            looking again where that is known. Reasons:
--                succeeded, cancelled, dead, unknown (why_ended)
--                    it is not waiting
--                running, held_key, delayed, paused (why_apart)
--                    it is not in line: it runs; behind job other_id; until its time; the queue is
--                    paused, since
--                no_worker, no_task, no_credential (why_unworked)
--                    nobody works the queue; somebody does, but none of them has the task, or a
--                    credential of its limiter
--                held_group, key_limit, suspect, queue_limit, concurrency (why_full)
--                    n run, of so many: in its group, with its key under the limiter, in the queue,
--                    under the limiter; suspect: it was lost with a worker and waits for an empty
--                    one
--                rate, budget, breaker, probe, upstream, restart (why_limited)
--                    what the limiter says, for the credential that is free first
--                behind
--                    n others of its queue go first
--                next
--                    nothing: a worker should take it within its poll interval
-- It looks at what a claim would look at, without locks: the answer is about this moment.
CREATE OR REPLACE FUNCTION livewell.why_job(p_id bigint)
RETURNS TABLE (
    reason text, n bigint, of_limit bigint, other_id bigint, name text, since timestamptz,
    wait_seconds float8
)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_job       livewell.job;
    v_queue     livewell.queue;
    v_limiter   livewell.limiter;
    v_running   text[];
BEGIN
    SELECT * INTO v_job FROM livewell.job j WHERE j.id = p_id;
    IF NOT FOUND THEN
        SELECT e.reason, e.name, e.since INTO reason, name, since FROM livewell.why_ended(p_id) e;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO v_queue FROM livewell.queue q WHERE q.name = v_job.queue;
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = v_queue.limiter;
    v_running := CASE
        WHEN v_limiter.name IS NULL THEN ARRAY[v_job.queue]
        ELSE ARRAY(SELECT q.name FROM livewell.queue q WHERE q.limiter = v_limiter.name) END;

    SELECT a.reason, a.other_id, a.name, a.since, a.wait_seconds
    INTO reason, other_id, name, since, wait_seconds
    FROM livewell.why_apart(v_job, v_queue, v_now) a;
    IF reason IS NULL THEN
        SELECT w.reason, w.name INTO reason, name
        FROM livewell.why_unworked(v_job, v_limiter, v_now) w;
    END IF;
    IF reason IS NULL THEN
        SELECT f.reason, f.n, f.of_limit, f.other_id, f.name
        INTO reason, n, of_limit, other_id, name
        FROM livewell.why_full(v_job, v_queue, v_limiter, v_running) f;
    END IF;
    IF reason IS NULL AND v_limiter.name IS NOT NULL THEN
        SELECT l.reason, l.wait_seconds INTO reason, wait_seconds
        FROM livewell.why_limited(v_job, v_limiter, v_running, v_now) l;
        IF reason IS NOT NULL THEN
            name := v_limiter.name;
            since := v_now + wait_seconds * interval '1 second';
        END IF;
    END IF;
    IF reason IS NULL THEN
        n := (
            SELECT count(*)
            FROM (
                SELECT FROM livewell.job j
                WHERE j.queue = v_job.queue
                    AND j.state = 'ready'
                    AND j.lost = 0
                    AND (j.lane, j.rank, j.id) < (v_job.lane, v_job.rank, v_job.id)
                LIMIT 1000000
            ) b
        );
        reason := CASE WHEN n > 0 THEN 'behind' ELSE 'next' END;
        name := v_job.queue;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.why_job IS
    'Why a job is not running: the first thing that stands in its way.';
REVOKE ALL ON FUNCTION livewell.why_job FROM PUBLIC;

-- ── queue/functions/why/why_limited.sql ──
-- What the limiter of a job says to its next call, for the credential that is free first. NULL: the
-- call may go.
--
-- Called by: why_job, with its planner settings. Index: job_limited_idx; see limiter_room.
-- p_running: the queues that share the limiter.
CREATE OR REPLACE FUNCTION livewell.why_limited(
    p_job livewell.job,
    p_limiter livewell.limiter,
    p_running text[],
    p_now timestamptz,
    OUT reason text,
    OUT wait_seconds float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_reserved  jsonb;
    v_estimate  float8;
    v_room      record;
BEGIN
    SELECT coalesce(jsonb_object_agg(u.credential, u.units), '{}') INTO v_reserved
    FROM (
        SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
        WHERE j.queue = ANY (p_running) AND j.credential IS NOT NULL
        GROUP BY j.credential
    ) u;
    v_estimate := CASE p_limiter.budget_unit
        WHEN 'calls' THEN 1
        ELSE coalesce(
            p_job.units,
            (
                SELECT e.units FROM livewell.limiter_estimate e
                WHERE e.limiter = p_limiter.name AND e.kind = p_job.kind
            ),
            p_limiter.estimate_units
        ) END;
    SELECT r.reason, r.wait_seconds,
        CASE p_job.lane WHEN 0 THEN r.calls ELSE r.background_calls END AS calls
    INTO v_room
    FROM livewell.limiter_room(
        p_limiter, p_now, v_reserved, v_estimate,
        ARRAY(
            SELECT c.name FROM livewell.limiter_credential c
            WHERE c.limiter = p_limiter.name
                AND EXISTS (
                    SELECT FROM livewell.job j
                    WHERE j.queue = ANY (p_running)
                        AND j.credential IS NOT NULL
                        AND j.fence = c.probe_fence
                )
        )
    ) AS r
    ORDER BY CASE p_job.lane WHEN 0 THEN r.calls ELSE r.background_calls END DESC,
        r.wait_seconds NULLS LAST
    LIMIT 1;
    IF v_room.calls = 0 THEN
        reason := v_room.reason;
        wait_seconds := v_room.wait_seconds;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.why_limited IS
    'Why the limiter of a job lets no call of it through; NULL if it does.';
REVOKE ALL ON FUNCTION livewell.why_limited FROM PUBLIC;

-- ── queue/functions/why/why_unworked.sql ──
-- Why no worker could take a job, whatever else holds it up: nobody works its queue, has its task,
-- or has a credential of its limiter. NULL: somebody could.
--
-- Called by: why_job, with its planner settings. A table of a few rows.
CREATE OR REPLACE FUNCTION livewell.why_unworked(
    p_job livewell.job,
    p_limiter livewell.limiter,
    p_now timestamptz,
    OUT reason text,
    OUT name text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (
        SELECT FROM livewell.worker w
        WHERE livewell.works_queue(w.queues, p_job.queue) AND w.expires_at > p_now
    ) THEN
        reason := 'no_worker';
        name := p_job.queue;
    ELSIF NOT EXISTS (
        SELECT FROM livewell.worker w
        WHERE livewell.works_queue(w.queues, p_job.queue)
            AND p_job.kind = ANY (w.kinds)
            AND w.expires_at > p_now
    ) THEN
        reason := 'no_task';
        name := p_job.kind;
    ELSIF p_limiter.name IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM livewell.worker w
            JOIN livewell.limiter_credential c
                ON c.limiter = p_limiter.name
                    AND c.active
                    AND p_limiter.name || ' ' || c.name <> ALL (w.lacks)
            WHERE livewell.works_queue(w.queues, p_job.queue)
                AND p_job.kind = ANY (w.kinds)
                AND w.expires_at > p_now
        )
    THEN
        reason := 'no_credential';
        name := p_limiter.name;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.why_unworked IS
    'Why no living worker could take a job; NULL if one could.';
REVOKE ALL ON FUNCTION livewell.why_unworked FROM PUBLIC;

-- ── queue/grants.sql ──
-- Who may do what with the queue.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables
table batch                         -        -        rw       rawd     r
table dead_job                      -        -        rawd     rawd     r
table job                           -        -        rawd     rawd     r
table job_history                   -        -        ra       ra       r
table queue                         -        -        rw       raw      r
table stat                          -        -        r        rawd     r
table tick                          -        -        r        rawd     r
table worker                        -        -        r        rawd     r

-- sequences. timeline, failover: whether there was a failover; whoever hands out numbers looks.
-- promoted: whether workers must report first, after a restart; whoever asks a limiter looks.
sequence failover_seq               -        -        r        r        -
sequence fence_seq                  -        -        r        rU       -
sequence job_id_seq                 -        -        -        rU       -
sequence promoted_seq               -        -        r        r        r
sequence timeline_seq               -        -        r        r        -
sequence worker_id_seq              -        -        -        rU       -

-- functions: batch
function create_batch               -        -        -        X        -
function end_batches                -        -        X        X        -
function seal_batch                 -        -        -        X        -
function show_batch                 -        -        X        X        X

-- functions: claim
function claim_jobs                 -        -        -        X        -
function claim_limited              -        -        -        X        -
function exchange_jobs              -        -        -        X        -
function group_has_room             -        -        -        X        -
function limited_answer             -        -        -        X        -
function limited_candidates         -        -        -        X        -
function lock_behind_marks          -        -        -        X        -
function lock_limited               -        -        -        X        -
function lock_suspect               -        -        -        X        -
function measure_room               -        -        -        X        -
function pick_limited               -        -        -        X        -
function raise_fences               -        -        -        X        -
function read_candidates            -        -        -        X        -

-- functions: enqueue
function answer_jobs                -        -        X        X        -
function check_jobs                 -        -        X        X        -
function declare_queue              -        -        -        X        -
function drop_repeated              -        -        X        X        -
function enqueue_jobs               -        -        X        X        -
function enqueue_keyed              -        -        -        X        -
function enqueue_one                -        -        -        X        -
function enqueue_plain              -        -        -        X        -
function given_jobs                 -        -        X        X        -
function insert_jobs                -        -        X        X        -
function merge_jobs                 -        -        X        X        -
function refuse_job                 -        -        X        X        -
function reserve_job_ids            -        -        -        X        -

-- functions: finish
function charge_jobs                -        -        X        X        -
function finish_jobs                -        -        -        X        -
function release_held               -        -        X        X        -
function settle_jobs                -        -        X        X        -

-- functions: lease
function reconcile_jobs             -        -        -        X        -
function register_worker            -        -        -        X        -
function release_worker             -        -        -        X        -
function renew_worker               -        -        -        X        -
function report_lacks               -        -        -        X        -
function report_progress            -        -        -        X        -
function works_queue                -        -        X        X        X

-- functions: operate
function cancel_job                 -        -        X        X        -
function edit_dead                  -        -        X        -        -
function hasten_job                 -        -        X        -        -
function list_dead                  -        -        X        -        X
function list_jobs                  -        -        X        -        X
function list_limiters              -        -        X        X        X
function list_queue_states          -        -        X        X        X
function list_queues                -        -        X        -        X
function list_worker_states         -        -        X        X        X
function list_workers               -        -        X        -        X
function pause_queue                -        -        X        -        -
function redrive_dead               -        -        X        -        -
function sample_queue               -        -        X        X        X
function show_job                   -        -        X        X        X
function show_progress              -        -        X        X        X
function show_traceback             -        -        X        X        X
function state_limits               -        -        X        X        X
function state_queue                -        -        X        X        X

-- functions: permits
function book_call                  -        -        -        X        -
function permit_room                -        -        -        X        -
function report_wall                -        -        -        X        -
function restart_wait               -        -        X        X        X
function server_started             -        -        X        X        X
function take_call                  -        -        -        X        -
function take_permits               -        -        -        X        -

-- functions: upkeep
function add_stats                  -        -        -        X        -
function drop_history_day           -        -        -        X        -
function ensure_history_days        -        -        -        X        -
function maintain                   -        -        -        X        -
function promote_held               -        -        -        X        -
function promote_jobs               -        -        -        X        -
function prune_queue                -        -        -        X        -
function recover_jobs               -        -        -        X        -

-- functions: why
function why_apart                  -        -        X        X        X
function why_ended                  -        -        X        X        X
function why_full                   -        -        X        X        X
function why_job                    -        -        X        X        X
function why_limited                -        -        X        X        X
function why_unworked               -        -        X        X        X
$matrix$);

-- ── schedule/001_tables.sql ──
-- Singletons: periodic work that must never overlap itself, on any number of machines, also behind a transaction pooler (R21).
-- Never edited after release; changes are a new numbered file.

CREATE TABLE livewell.singleton (
    name            text COLLATE "C" PRIMARY KEY,
    fence           bigint      NOT NULL DEFAULT 0,     -- grows with every change of holder; an older one can do nothing
    holder          text        NOT NULL,               -- who it is, for people
    acquired_at     timestamptz NOT NULL,
    renewed_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    CONSTRAINT singleton_name_check CHECK (name ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    CONSTRAINT singleton_holder_check CHECK (octet_length(holder) <= 200)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.singleton IS 'Leases with a fence, one row per name: who may do this work now, and until when.';

-- ── schedule/002_schedules.sql ──
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

-- ── schedule/003_open_ended.sql ──
-- 0.7.0: schedules whose runs belong to the database instead of a process: a run of hours goes on
-- through any number of restarts. Never edited after release; changes are a new numbered file.

ALTER TABLE livewell.schedule
    -- its runs have no handler and no lease; whoever does the work ends them (count_open_run)
    ADD COLUMN open_ended boolean NOT NULL DEFAULT false,
    -- the work cannot be done now: its slots wait, and none of them is late
    ADD COLUMN held_at timestamptz;

-- ── schedule/functions/admin/awaited_slot.sql ──
-- The slot that a schedule is late for, if it is late: its next one.
--
-- Called by: list_schedules() and late_schedules().
-- Index:     run_running_idx (schedule) WHERE state = 'running'
-- An open-ended run has no timeout. While one is under way its own slot counts: a run that is not over
-- when the next one would be is late. A schedule that is held is late for nothing.
CREATE OR REPLACE FUNCTION livewell.awaited_slot(p_schedule livewell.schedule)
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT CASE WHEN (p_schedule).held_at IS NULL THEN coalesce(
        (SELECT min(r.due_at) FROM livewell.run r
         WHERE (p_schedule).open_ended AND r.schedule = (p_schedule).name AND r.state = 'running'),
        (p_schedule).due_at) END
$$;
COMMENT ON FUNCTION livewell.awaited_slot IS 'The slot from which lateness counts.';
REVOKE ALL ON FUNCTION livewell.awaited_slot FROM PUBLIC;

-- ── schedule/functions/admin/late_at.sql ──
-- From when on periodic work is late: two intervals and a minute after it last happened (R24),
-- which is one interval and a minute after it was due.
--
-- Called by: list_schedules() and late_schedules().
CREATE OR REPLACE FUNCTION livewell.late_at(p_due timestamptz, p_interval interval)
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT p_due + p_interval + interval '1 minute'
$$;
COMMENT ON FUNCTION livewell.late_at IS 'The instant from which work that is due then is late.';
REVOKE ALL ON FUNCTION livewell.late_at FROM PUBLIC;

-- ── schedule/functions/admin/late_schedules.sql ──
-- The names of what is late, and for how many seconds: what an outside watchdog is told (R24).
--
-- Called by: rule_schedule_late, state_schedules; GET /health/schedules, without a login: names and
--            numbers, nothing else. Bounded: there are 1,000 schedules at most.
-- Where no scheduler ever ran, its own loop is late: nothing periodic happens there.
CREATE OR REPLACE FUNCTION livewell.late_schedules()
RETURNS TABLE (name text, late_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT l.name, extract(epoch FROM v_now - l.late_at)::float8
    FROM (
        SELECT s.name, livewell.late_at(livewell.awaited_slot(s), s.gap) AS late_at
        FROM livewell.schedule s
        WHERE s.paused_at IS NULL AND s.ended_at IS NULL
        UNION ALL
        SELECT p.name, livewell.late_at(p.last_at + p.every, p.every) FROM livewell.pulse p
        UNION ALL
        SELECT 'queue.maintain', livewell.late_at(t.last_at, interval '2 seconds')
        FROM livewell.tick t
        WHERE t.name = 'maintain'
        UNION ALL
        SELECT 'schedule.loop', v_now - interval '1 second'
        WHERE NOT EXISTS (SELECT FROM livewell.pulse p WHERE p.name = 'schedule.loop')
    ) l
    WHERE l.late_at < v_now
    ORDER BY l.name;
END
$$;
COMMENT ON FUNCTION livewell.late_schedules IS 'What is late, by name: schedules and loops.';
REVOKE ALL ON FUNCTION livewell.late_schedules FROM PUBLIC;

-- ── schedule/functions/admin/list_runs.sql ──
-- A page of runs, the newest first; of one schedule, or of all. Keyset, never OFFSET.
--
-- Called by: CLI `runs list|history`, GET /v1/runs and /v1/runs/{schedule}. p_before: the id of the
--            last run of the page before; NULL begins.
-- Index:     run_pkey, or run_schedule_idx (schedule, id).
CREATE OR REPLACE FUNCTION livewell.list_runs(p_schedule text, p_before bigint, p_limit integer)
RETURNS TABLE (
    id bigint, schedule text, state text, reason text, slots integer, asked boolean,
    due_at timestamptz, last_due_at timestamptz, started_at timestamptz, finished_at timestamptz,
    holder text, rows_affected bigint, error text
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_limit     integer := least(greatest(p_limit, 1), 1000);
    v_before    bigint := coalesce(p_before, 9223372036854775807);
BEGIN
    -- Two statements, so that each has the plan of its own index.
    IF p_schedule IS NULL THEN
        RETURN QUERY
        SELECT r.id, r.schedule, r.state::text, r.reason, r.slots, r.asked, r.due_at, r.last_due_at,
            r.started_at, r.finished_at, r.holder, r.rows_affected, r.error
        FROM livewell.run r
        WHERE r.id < v_before
        ORDER BY r.id DESC LIMIT v_limit;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT r.id, r.schedule, r.state::text, r.reason, r.slots, r.asked, r.due_at, r.last_due_at,
        r.started_at, r.finished_at, r.holder, r.rows_affected, r.error
    FROM livewell.run r
    WHERE r.schedule = p_schedule AND r.id < v_before
    ORDER BY r.id DESC LIMIT v_limit;
END
$$;
COMMENT ON FUNCTION livewell.list_runs IS 'A page of runs before a given id, newest first.';
REVOKE ALL ON FUNCTION livewell.list_runs FROM PUBLIC;

-- ── schedule/functions/admin/list_schedules.sql ──
-- Every schedule with its next slot and its latest run, and every loop with its pulse, by name
-- (S5).
--
-- Called by: state_schedules; CLI `schedules list`, GET /v1/schedules. Bounded: there are 1,000
--            schedules at most.
-- Index:     run_schedule_idx (schedule, id), once per schedule.
-- state: running, asked, waiting, paused, ended, or orphaned: no process that has its handler was
-- here for a minute. A loop is turning or stopped.
CREATE OR REPLACE FUNCTION livewell.list_schedules()
RETURNS TABLE (
    name text, kind text, rule text, zone text, missed text, internal boolean, state text,
    due_at timestamptz, late_at timestamptz, late boolean, timeout_seconds float8,
    seen_at timestamptz, last_state text, last_reason text, last_due_at timestamptz,
    last_started_at timestamptz, last_finished_at timestamptz, last_error text, last_rows bigint,
    holder text, turns bigint, done bigint
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT s.name, s.kind, coalesce(s.cron, s.every::text, s.at::text), s.zone, s.missed,
        s.internal,
        CASE
            WHEN EXISTS (
                SELECT FROM livewell.run o WHERE o.schedule = s.name AND o.state = 'running'
            )
                THEN 'running'
            WHEN s.seen_at < v_now - interval '1 minute' THEN 'orphaned'
            WHEN s.asked_at IS NOT NULL THEN 'asked'
            WHEN s.paused_at IS NOT NULL THEN 'paused'
            WHEN s.ended_at IS NOT NULL THEN 'ended'
            ELSE 'waiting'
        END,
        CASE WHEN s.held_at IS NULL THEN s.due_at END,
        CASE WHEN s.paused_at IS NULL THEN l.late_at END,
        s.paused_at IS NULL AND coalesce(l.late_at < v_now, false),
        extract(epoch FROM s.timeout)::float8, s.seen_at, r.state::text, r.reason, r.last_due_at,
        r.started_at, r.finished_at, r.error, r.rows_affected, r.holder, NULL::bigint, NULL::bigint
    FROM livewell.schedule s
    CROSS JOIN LATERAL (
        SELECT livewell.late_at(livewell.awaited_slot(s), s.gap) AS late_at
    ) l
    LEFT JOIN LATERAL (
        SELECT * FROM livewell.run o WHERE o.schedule = s.name ORDER BY o.id DESC LIMIT 1
    ) r ON true
    UNION ALL
    SELECT p.name, 'loop', p.every::text, NULL, NULL, true,
        CASE
            WHEN livewell.late_at(p.last_at + p.every, p.every) < v_now THEN 'stopped'
            ELSE 'turning'
        END,
        NULL, livewell.late_at(p.last_at + p.every, p.every),
        livewell.late_at(p.last_at + p.every, p.every) < v_now, NULL, p.last_at, NULL, NULL, NULL,
        NULL, p.last_at, NULL, NULL, p.holder, p.turns, p.done
    FROM livewell.pulse p
    UNION ALL
    SELECT 'queue.maintain', 'loop', (interval '1 second')::text, NULL, NULL, true,
        CASE
            WHEN livewell.late_at(t.last_at, interval '2 seconds') < v_now THEN 'stopped'
            ELSE 'turning'
        END,
        NULL, livewell.late_at(t.last_at, interval '2 seconds'),
        livewell.late_at(t.last_at, interval '2 seconds') < v_now, NULL, t.last_at, NULL, NULL,
        NULL, NULL, t.last_at, NULL, NULL, t.last_worker::text, t.n, NULL
    FROM livewell.tick t
    WHERE t.name = 'maintain' AND t.last_at IS NOT NULL
    ORDER BY 1;
END
$$;
COMMENT ON FUNCTION livewell.list_schedules IS
    'Schedules and loops with their next slot, their latest run, and whether they are late.';
REVOKE ALL ON FUNCTION livewell.list_schedules FROM PUBLIC;

-- ── schedule/functions/admin/pause_schedule.sql ──
-- Begin no more runs of a schedule, or begin them again. What runs goes on; slots that come
-- meanwhile are skipped, and the history says so.
--
-- Called by: CLI `schedules pause|resume`, POST /v1/schedules/{name}/pause|resume.
CREATE OR REPLACE FUNCTION livewell.pause_schedule(p_name text, p_paused boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.schedule s
    SET paused_at = CASE WHEN p_paused THEN coalesce(s.paused_at, v_now) END
    WHERE s.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.pause_schedule IS
    'Pauses or resumes a schedule; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.pause_schedule FROM PUBLIC;

-- ── schedule/functions/admin/remove_schedule.sql ──
-- Forget a schedule that is no longer in anybody's code, or a loop that nobody runs any more. Its
-- runs stay in the history until their time is over.
--
-- Called by: CLI `schedules remove`.
-- Answer:    removed; in use: a process that has its handler was here within a minute, and would
--            only declare it again; unknown
CREATE OR REPLACE FUNCTION livewell.remove_schedule(p_name text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_seen  timestamptz;
BEGIN
    SELECT max(f.seen_at) INTO v_seen
    FROM (
        SELECT s.seen_at FROM livewell.schedule s
        WHERE s.name = p_name
        UNION ALL
        SELECT p.last_at FROM livewell.pulse p
        WHERE p.name = p_name
    ) f;
    IF v_seen IS NULL THEN
        RETURN 'unknown';
    END IF;
    IF v_seen > v_now - interval '1 minute' THEN
        RETURN 'in use';
    END IF;
    DELETE FROM livewell.schedule s WHERE s.name = p_name;
    DELETE FROM livewell.pulse p WHERE p.name = p_name;
    RETURN 'removed';
END
$$;
COMMENT ON FUNCTION livewell.remove_schedule IS
    'Removes a schedule or a loop that no process has any more.';
REVOKE ALL ON FUNCTION livewell.remove_schedule FROM PUBLIC;

-- ── schedule/functions/admin/state_schedules.sql ──
-- Every schedule and loop: is it late, when is it next, how did it end last?
--
-- Called by: system_state. Exact, through list_schedules(): there are 1,000 schedules at most.
-- A loop that never turned is not in that list; late_schedules() names it all the same.
CREATE OR REPLACE FUNCTION livewell.state_schedules()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object(
        'how', 'exact',
        'late', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', l.name, 'late_seconds', l.late_seconds
                    ) ORDER BY l.name
                ),
                '[]'
            )
            FROM livewell.late_schedules() l
        ),
        'schedules', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', s.name, 'kind', s.kind, 'state', s.state, 'late', s.late,
                        'due_seconds', extract(epoch FROM s.due_at - v_now)::float8,
                        'last', s.last_state,
                        'ended_seconds', extract(epoch FROM v_now - s.last_finished_at)::float8
                    ) ORDER BY s.name
                ),
                '[]'
            )
            FROM livewell.list_schedules() s
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_schedules IS
    'Schedules and loops for the system state: late, next, and how the last run ended.';
REVOKE ALL ON FUNCTION livewell.state_schedules FROM PUBLIC;

-- ── schedule/functions/run/ask_run.sql ──
-- Ask for a run beside the slots, now.
--
-- Called by: CLI `schedules run`, POST /v1/schedules/{name}/run. A run that was asked for already
--            is not asked for twice.
-- Answer:    asked; nobody: it is asked for, and waits for a process that has its handler; unknown
CREATE OR REPLACE FUNCTION livewell.ask_run(p_name text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz;
    v_seen  timestamptz;
BEGIN
    SELECT s.seen_at INTO v_seen FROM livewell.schedule s WHERE s.name = p_name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    v_now := livewell.now();
    UPDATE livewell.schedule s SET asked_at = coalesce(s.asked_at, v_now) WHERE s.name = p_name;
    RETURN CASE WHEN v_seen < v_now - interval '1 minute' THEN 'nobody' ELSE 'asked' END;
END
$$;
COMMENT ON FUNCTION livewell.ask_run IS 'Asks for a run of a schedule beside its slots.';
REVOKE ALL ON FUNCTION livewell.ask_run FROM PUBLIC;

-- ── schedule/functions/run/begin_asked_run.sql ──
-- Begin the run that somebody asked for, beside the slots; also of a schedule that is paused or has
-- ended.
--
-- Called by: begin_walk; schedule/scheduler.py, for a schedule that tick_schedules shows with
--            asked_at.
-- Answer:    begun, waiting or moved, as begin_run(). It waits while the last run still runs: who
--            asked wants it to happen.
CREATE OR REPLACE FUNCTION livewell.begin_asked_run(p_name text, p_holder text, p_lease interval)
RETURNS TABLE (answer text, run_id bigint, fence bigint, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_asked timestamptz;
    v_taken record;
BEGIN
    SELECT s.asked_at INTO v_asked FROM livewell.schedule s
    WHERE s.name = p_name
    FOR NO KEY UPDATE SKIP LOCKED;
    IF v_asked IS NULL THEN
        RETURN QUERY SELECT 'moved', NULL::bigint, NULL::bigint, NULL::float8;
        RETURN;
    END IF;
    SELECT * INTO v_taken FROM livewell.take_run(p_name, v_asked, p_holder, p_lease, true);
    IF v_taken.answer = 'other' THEN
        RETURN QUERY SELECT 'waiting', NULL::bigint, NULL::bigint, v_taken.wait_seconds;
        RETURN;
    END IF;
    UPDATE livewell.schedule s SET asked_at = NULL WHERE s.name = p_name;
    RETURN QUERY
    SELECT CASE v_taken.answer WHEN 'begun' THEN 'begun' ELSE 'moved' END, v_taken.run_id,
        v_taken.fence, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.begin_asked_run IS
    'Begins the run that somebody asked for, under the lease of its schedule.';
REVOKE ALL ON FUNCTION livewell.begin_asked_run FROM PUBLIC;

-- ── schedule/functions/run/begin_run.sql ──
-- Begin the run of a slot, in one step: the lease with its fence, the run, the skipped slots before
-- it, and the next slot.
--
-- Called by: begin_walk; schedule/scheduler.py, with what it computed from the rule: p_from is the
--            slot that is due, p_slot the one to run (NULL: none), p_skipped slots from p_from to
--            p_skipped_last were missed, p_next comes then.
-- Answer:    begun    run it, under this fence
--            skipped  it was not run, and the history says why
--            waiting  the last run still runs, and this schedule catches up: ask again in
--                     wait_seconds
--            moved    somebody else was first, or the clock says that it is not due
-- Why SKIP LOCKED: the slot is in the hands of whoever has the row; waiting would only tell us so
-- later.
-- A slot that comes while the last run still runs is skipped (R21: nothing overlaps itself), unless
-- the policy is to catch up with all: then it waits.
CREATE OR REPLACE FUNCTION livewell.begin_run(
    p_name text,
    p_holder text,
    p_from timestamptz,
    p_slot timestamptz,
    p_next timestamptz,
    p_gap interval,
    p_skipped integer,
    p_skipped_last timestamptz,
    p_lease interval
)
RETURNS TABLE (answer text, run_id bigint, fence bigint, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_row       livewell.schedule;
    v_answer    text;
    v_run       bigint;
    v_fence     bigint;
    v_wait      float8;
BEGIN
    SELECT * INTO v_row FROM livewell.schedule s
    WHERE s.name = p_name
    FOR NO KEY UPDATE SKIP LOCKED;
    v_now := livewell.now();
    IF v_row.due_at IS DISTINCT FROM p_from
        OR p_from IS NULL
        OR v_row.ended_at IS NOT NULL
        OR coalesce(p_slot, p_from) > v_now
        OR p_slot < p_from
        OR p_next <= coalesce(p_slot, p_skipped_last)
    THEN
        RETURN QUERY SELECT 'moved', NULL::bigint, NULL::bigint, NULL::float8;
        RETURN;
    END IF;
    IF v_row.paused_at IS NOT NULL THEN
        PERFORM livewell.skip_slots(
            p_name, p_from, coalesce(p_slot, p_skipped_last),
            p_skipped + (p_slot IS NOT NULL)::integer, 'paused', p_holder
        );
        PERFORM livewell.move_schedule(p_name, p_next, p_gap);
        RETURN QUERY SELECT 'skipped', NULL::bigint, NULL::bigint, NULL::float8;
        RETURN;
    END IF;
    IF p_skipped > 0 THEN
        PERFORM livewell.skip_slots(p_name, p_from, p_skipped_last, p_skipped, 'missed', p_holder);
    END IF;
    IF p_slot IS NOT NULL THEN
        SELECT t.answer, t.run_id, t.fence, t.wait_seconds INTO v_answer, v_run, v_fence, v_wait
        FROM livewell.take_run(p_name, p_slot, p_holder, p_lease, false) t;
        IF v_answer = 'other' AND v_row.missed = 'all' THEN
            PERFORM livewell.move_schedule(p_name, p_slot, p_gap);
            RETURN QUERY SELECT 'waiting', NULL::bigint, NULL::bigint, v_wait;
            RETURN;
        END IF;
        IF v_answer = 'other' THEN
            PERFORM livewell.skip_slots(p_name, p_slot, p_slot, 1, 'still running', p_holder);
        END IF;
    END IF;
    PERFORM livewell.move_schedule(p_name, p_next, p_gap);
    RETURN QUERY
    SELECT CASE v_answer WHEN 'begun' THEN 'begun' ELSE 'skipped' END, v_run, v_fence, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.begin_run IS
    'Begins the run of a due slot under the lease of its schedule, or records why not.';
REVOKE ALL ON FUNCTION livewell.begin_run FROM PUBLIC;

-- ── schedule/functions/run/count_open_run.sql ──
-- Write down what was done for an open-ended run, and end it if that was all.
--
-- Called by: record_walk; dispatch_scheduled(), in the transaction of a page and under a fence of
--            its own.
-- p_holder:  who did it; the run may have had many hands.
-- A run that has been failed meanwhile stays so.
CREATE OR REPLACE FUNCTION livewell.count_open_run(
    p_run bigint, p_holder text, p_rows integer, p_over boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.run r
    SET rows_affected = coalesce(r.rows_affected, 0) + p_rows, holder = coalesce(p_holder, r.holder),
        state = CASE WHEN p_over THEN 'succeeded'::livewell.run_state ELSE r.state END,
        finished_at = CASE WHEN p_over THEN greatest(v_now, r.started_at) END
    WHERE r.id = p_run AND r.state = 'running';
END
$$;
COMMENT ON FUNCTION livewell.count_open_run IS 'Adds to the rows of an open-ended run, or ends it.';
REVOKE ALL ON FUNCTION livewell.count_open_run FROM PUBLIC;

-- ── schedule/functions/run/crash_runs.sql ──
-- Runs that are left running although their lease is over become crashed (S4).
--
-- Called by: tick_schedules(), so at start-up and with every turn of every scheduler.
-- Index:     run_running_idx (schedule) WHERE state = 'running'
-- The lease is locked before the run is touched, as finish_run does it: a run that is being
-- finished right now has not crashed. SKIP LOCKED: nobody waits here.
CREATE OR REPLACE FUNCTION livewell.crash_runs(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_names     text[];
    v_crashed   integer;
BEGIN
    IF NOT EXISTS (SELECT FROM livewell.run r WHERE r.state = 'running') THEN
        RETURN 0;
    END IF;
    SELECT array_agg(l.name) INTO v_names
    FROM (
        SELECT s.name FROM livewell.singleton s
        WHERE s.name = ANY (
            ARRAY(
                SELECT 'schedule.' || r.schedule FROM livewell.run r
                WHERE r.state = 'running'
                ORDER BY r.schedule LIMIT p_limit
            )
        )
        ORDER BY s.name FOR NO KEY UPDATE SKIP LOCKED
    ) l;
    v_now := livewell.now();
    UPDATE livewell.run r
    SET state = 'crashed', finished_at = greatest(v_now, r.started_at),
        error = 'its lease ran out: the process ended, stood still, or lost the database'
    FROM livewell.singleton s
    WHERE s.name = ANY (v_names)
        AND r.schedule = substr(s.name, 10)
        AND r.state = 'running'
        AND (s.fence <> r.fence OR s.expires_at <= v_now);
    GET DIAGNOSTICS v_crashed = ROW_COUNT;
    RETURN v_crashed;
END
$$;
COMMENT ON FUNCTION livewell.crash_runs IS
    'Turns running runs whose lease is over into crashed ones; answers how many.';
REVOKE ALL ON FUNCTION livewell.crash_runs FROM PUBLIC;

-- ── schedule/functions/run/fail_open_run.sql ──
-- End the open run of a schedule that was changed or removed.
--
-- Called by: declare_open_schedule() and remove_open_schedule(), which hold the schedule's row.
-- Index:     run_running_idx (schedule) WHERE state = 'running'
CREATE OR REPLACE FUNCTION livewell.fail_open_run(p_name text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.run r
    SET state = 'failed', finished_at = greatest(v_now, r.started_at),
        error = 'its schedule was changed or removed before it was over'
    WHERE r.schedule = p_name AND r.state = 'running';
END
$$;
COMMENT ON FUNCTION livewell.fail_open_run IS 'Fails the run of an open-ended schedule that has changed.';
REVOKE ALL ON FUNCTION livewell.fail_open_run FROM PUBLIC;

-- ── schedule/functions/run/finish_run.sql ──
-- End a run and give its lease back, if the term is still ours.
--
-- Called by: schedule/run.py. False is the answer "fenced": the lease had run out or is somebody
--            else's, and nothing was written.
-- Asked again after an unknown answer it says true once more.
CREATE OR REPLACE FUNCTION livewell.finish_run(
    p_run bigint, p_fence bigint, p_succeeded boolean, p_error text, p_rows bigint
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz;
    v_row   livewell.run;
BEGIN
    SELECT * INTO v_row FROM livewell.run r WHERE r.id = p_run AND r.fence = p_fence;
    IF NOT FOUND OR v_row.state NOT IN ('running', 'crashed') THEN
        RETURN FOUND;
    END IF;
    IF NOT livewell.hold_singleton('schedule.' || v_row.schedule, p_fence) THEN
        RETURN false;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.run r
    SET state = CASE WHEN p_succeeded THEN 'succeeded'::livewell.run_state ELSE 'failed' END,
        finished_at = greatest(v_now, r.started_at), error = livewell.redact(p_error),
        rows_affected = p_rows
    WHERE r.id = p_run AND r.state = 'running';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    RETURN livewell.release_singleton('schedule.' || v_row.schedule, p_fence);
END
$$;
COMMENT ON FUNCTION livewell.finish_run IS
    'Ends a run under its fence and releases its lease; false when it is not ours any more.';
REVOKE ALL ON FUNCTION livewell.finish_run FROM PUBLIC;

-- ── schedule/functions/run/open_run.sql ──
-- Begin the run of one slot of an open-ended schedule, unless the last one is still open.
--
-- Called by: take_run(), whose callers hold the schedule's row, so nobody begins another one meanwhile.
-- Index:     run_running_idx (schedule) WHERE state = 'running'
-- Answer:    begun, other or done, as take_run().
CREATE OR REPLACE FUNCTION livewell.open_run(
    p_name text, p_slot timestamptz, p_holder text, p_asked boolean)
RETURNS TABLE (answer text, run_id bigint, fence bigint, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
    v_run   bigint;
BEGIN
    IF EXISTS (
        SELECT FROM livewell.run r WHERE r.schedule = p_name AND r.state = 'running') THEN
        RETURN QUERY SELECT 'other', NULL::bigint, NULL::bigint, 1::float8;
        RETURN;
    END IF;
    INSERT INTO livewell.run (
        schedule, due_at, last_due_at, state, started_at, fence, holder, asked)
    VALUES (p_name, p_slot, p_slot, 'running', greatest(v_now, p_slot), 0, p_holder, p_asked)
    ON CONFLICT (schedule, due_at) DO NOTHING RETURNING id INTO v_run;
    RETURN QUERY
    SELECT CASE WHEN v_run IS NULL THEN 'done' ELSE 'begun' END, v_run, 0::bigint, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.open_run IS 'Inserts the running run of a slot that needs no lease.';
REVOKE ALL ON FUNCTION livewell.open_run FROM PUBLIC;

-- ── schedule/functions/run/prune_runs.sql ──
-- Delete runs past their time, a bounded page per call.
--
-- Called by: schedule/housekeeping.py, hourly, until it answers 0.
-- Index:     run_finished_idx (finished_at); a run that runs has none, and stays.
CREATE OR REPLACE FUNCTION livewell.prune_runs(p_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    -- S2: thirty days at least, whatever the caller says
    v_before    timestamptz := v_now - greatest(p_days, 30) * interval '1 day';
    v_deleted   integer;
BEGIN
    DELETE FROM livewell.run r
    WHERE r.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.run o
            WHERE o.finished_at < v_before
            ORDER BY o.finished_at LIMIT greatest(p_limit, 0) FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    RETURN v_deleted;
END
$$;
COMMENT ON FUNCTION livewell.prune_runs IS
    'Removes runs that ended more than p_days ago (30 at least); answers how many.';
REVOKE ALL ON FUNCTION livewell.prune_runs FROM PUBLIC;

-- ── schedule/functions/run/renew_run.sql ──
-- Keep the lease of a run that takes longer, until its timeout.
--
-- Called by: schedule/run.py, every third of the lease.
-- False:     the term is over (it had run out, or somebody else has it), or the timeout is: nothing
--            that the caller still does counts.
-- Not acquire_singleton(): that one gives a new term to whoever comes late, and this run must not
-- live on in it.
CREATE OR REPLACE FUNCTION livewell.renew_run(p_run bigint, p_fence bigint, p_lease interval)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    -- for a handler that was told to stop to end, and for its end to be written
    c_grace CONSTANT interval := '30 seconds';
    v_now   timestamptz;
    v_name  text;
    v_until timestamptz;
BEGIN
    SELECT r.schedule, r.started_at + s.timeout + c_grace INTO v_name, v_until
    FROM livewell.run r
    JOIN livewell.schedule s ON s.name = r.schedule
    WHERE r.id = p_run AND r.fence = p_fence AND r.state = 'running';
    IF v_name IS NULL OR NOT livewell.hold_singleton('schedule.' || v_name, p_fence) THEN
        RETURN false;
    END IF;
    v_now := livewell.now();
    IF v_until <= v_now THEN
        RETURN false;
    END IF;
    UPDATE livewell.singleton g
    SET renewed_at = v_now, expires_at = least(v_now + p_lease, v_until)
    WHERE g.name = 'schedule.' || v_name;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.renew_run IS
    'Renews the lease of a run within its timeout; false when it is over.';
REVOKE ALL ON FUNCTION livewell.renew_run FROM PUBLIC;

-- ── schedule/functions/run/skip_slots.sql ──
-- Write down that slots were skipped, and why. Slots that are skipped one after another for one
-- reason are one row, so a schedule that is paused for a month does not fill the history.
--
-- Called by: begin_run(), which holds the schedule's row.
-- Index:     run_schedule_idx (schedule, id)
CREATE OR REPLACE FUNCTION livewell.skip_slots(
    p_name text,
    p_first timestamptz,
    p_last timestamptz,
    p_slots integer,
    p_reason text,
    p_holder text
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_last  livewell.run;
BEGIN
    SELECT * INTO v_last FROM livewell.run r WHERE r.schedule = p_name ORDER BY r.id DESC LIMIT 1;
    IF v_last.state = 'skipped' AND v_last.reason = p_reason AND v_last.last_due_at < p_first THEN
        UPDATE livewell.run r
        SET slots = least(r.slots::bigint + p_slots, 2147483647), last_due_at = p_last,
            finished_at = v_now, holder = p_holder
        WHERE r.id = v_last.id;
        RETURN;
    END IF;
    INSERT INTO livewell.run (
        schedule, due_at, last_due_at, slots, state, reason, holder, finished_at
    )
    VALUES (p_name, p_first, p_last, p_slots, 'skipped', p_reason, p_holder, v_now)
    -- it had its turn before: the clock or the rule was set back
    ON CONFLICT (schedule, due_at) DO NOTHING;
END
$$;
COMMENT ON FUNCTION livewell.skip_slots IS
    'Records skipped slots with their reason, in one row while the reason stays.';
REVOKE ALL ON FUNCTION livewell.skip_slots FROM PUBLIC;

-- ── schedule/functions/run/take_run.sql ──
-- Take the lease of a schedule and begin the run of one slot under it.
--
-- Called by: begin_run() and begin_asked_run(), which hold the schedule's row.
-- Answer:    begun    the run is ours, under this fence
--            other    the last run still runs: its lease is over in wait_seconds, unless it is
--                     renewed
--            done     this slot has had its run (the clock or the rule was set back)
-- Whoever gets the lease knows that the run before has lost it: what is left running is crashed
-- (S4).
-- Open-ended: no lease, so nothing crashes. Another run begins when the last one has been ended.
CREATE OR REPLACE FUNCTION livewell.take_run(
    p_name text, p_slot timestamptz, p_holder text, p_lease interval, p_asked boolean
)
RETURNS TABLE (answer text, run_id bigint, fence bigint, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_answer    text;
    v_fence     bigint;
    v_wait      float8;
    v_run       bigint;
BEGIN
    IF (SELECT s.open_ended FROM livewell.schedule s WHERE s.name = p_name) THEN
        RETURN QUERY SELECT * FROM livewell.open_run(p_name, p_slot, p_holder, p_asked);
        RETURN;
    END IF;
    SELECT a.answer, a.fence, a.wait_seconds INTO v_answer, v_fence, v_wait
    FROM livewell.acquire_singleton('schedule.' || p_name, p_holder, NULL, p_lease) a;
    IF v_answer <> 'held' THEN
        RETURN QUERY SELECT 'other', NULL::bigint, NULL::bigint, v_wait;
        RETURN;
    END IF;
    v_now := livewell.now();
    UPDATE livewell.run r
    SET state = 'crashed', finished_at = greatest(v_now, r.started_at),
        error = 'its lease ran out: the process ended, stood still, or lost the database'
    WHERE r.schedule = p_name AND r.state = 'running';
    -- It was due when the caller looked: a clock that stepped back since then has not made it
    -- early.
    INSERT INTO livewell.run (
        schedule, due_at, last_due_at, state, started_at, fence, holder, asked
    )
    VALUES (p_name, p_slot, p_slot, 'running', greatest(v_now, p_slot), v_fence, p_holder, p_asked)
    ON CONFLICT (schedule, due_at) DO NOTHING
    RETURNING id
    INTO v_run;
    IF v_run IS NULL THEN
        PERFORM livewell.release_singleton('schedule.' || p_name, v_fence);
        RETURN QUERY SELECT 'done', NULL::bigint, NULL::bigint, NULL::float8;
        RETURN;
    END IF;
    RETURN QUERY SELECT 'begun', v_run, v_fence, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.take_run IS
    'Acquires the lease of a schedule and inserts the running run of a slot.';
REVOKE ALL ON FUNCTION livewell.take_run FROM PUBLIC;

-- ── schedule/functions/scheduler/declare_open_schedule.sql ──
-- Say that an open-ended schedule exists, by which cron text it is due, and whether its work can be done.
--
-- Called by: show_walk; sync_walks(), for every scheduled type whose schedule says something else.
-- A rule that is as it was leaves the next slot alone. A new rule is planned anew by the next scheduler
-- that looks, and a run that is under way has failed.
-- A schedule that an app has declared under this name is left alone.
CREATE OR REPLACE FUNCTION livewell.declare_open_schedule(
    p_name text, p_cron text, p_zone text, p_held boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz;
    v_row   livewell.schedule;
BEGIN
    SELECT * INTO v_row FROM livewell.schedule s WHERE s.name = p_name FOR NO KEY UPDATE;
    IF NOT v_row.internal THEN
        RETURN;
    END IF;
    IF v_row.open_ended AND (v_row.cron, v_row.zone) IS DISTINCT FROM (p_cron, p_zone) THEN
        PERFORM livewell.fail_open_run(p_name);
    END IF;
    PERFORM livewell.declare_schedule(
        p_name, 'cron', p_cron, p_zone, NULL, NULL, 'once', interval '1 day', true, false);
    v_now := livewell.now();
    UPDATE livewell.schedule s
    SET open_ended = true, held_at = CASE WHEN p_held THEN coalesce(s.held_at, v_now) END
    WHERE s.name = p_name;
END
$$;
COMMENT ON FUNCTION livewell.declare_open_schedule IS
    'Adds an open-ended schedule, changes its rule, or holds it.';
REVOKE ALL ON FUNCTION livewell.declare_open_schedule FROM PUBLIC;

-- ── schedule/functions/scheduler/declare_schedule.sql ──
-- Say that a schedule exists, and by which rule it is due; a process that has its handler says so
-- when it starts.
--
-- Called by: declare_open_schedule; schedule/scheduler.py, for each of its schedules.
-- A rule that is as it was leaves the next slot alone, so a restart neither forgets a slot nor adds
-- one. A new rule is planned anew from now on; a cron text is planned by the caller
-- (plan_schedule).
-- p_at_once: the first slot of an interval is now, and not one interval from now.
CREATE OR REPLACE FUNCTION livewell.declare_schedule(
    p_name text,
    p_kind text,
    p_cron text,
    p_zone text,
    p_every interval,
    p_at timestamptz,
    p_missed text,
    p_timeout interval,
    p_internal boolean,
    p_at_once boolean
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_schedules_max CONSTANT integer := 1000;
    v_now   timestamptz;
    v_first timestamptz;
    v_row   livewell.schedule;
BEGIN
    SELECT * INTO v_row FROM livewell.schedule s WHERE s.name = p_name FOR NO KEY UPDATE;
    v_now := livewell.now();
    v_first := CASE p_kind
        WHEN 'once' THEN p_at
        WHEN 'interval' THEN CASE WHEN p_at_once THEN v_now ELSE v_now + p_every END END;
    IF v_row.name IS NULL THEN
        IF (SELECT count(*) FROM livewell.schedule) >= c_schedules_max THEN
            RAISE EXCEPTION
                'schedule %: there are % already; remove some with: livewell schedules remove NAME',
                p_name, c_schedules_max
                USING ERRCODE = 'LW003';
        END IF;
        INSERT INTO livewell.schedule (
            name, kind, cron, zone, every, at, missed, timeout, internal, due_at, gap, seen_at,
            created_at
        )
        VALUES (
            p_name, p_kind, p_cron, p_zone, p_every, p_at, p_missed, p_timeout, p_internal, v_first,
            coalesce(p_every, '0'), v_now, v_now
        )
        -- another process of the same app, at the same moment
        ON CONFLICT (name) DO NOTHING;
        RETURN;
    END IF;
    UPDATE livewell.schedule s
    SET missed = p_missed, timeout = p_timeout, internal = p_internal, seen_at = v_now
    WHERE s.name = p_name;
    IF (
        v_row.kind, v_row.cron, v_row.zone, v_row.every, v_row.at
    ) IS DISTINCT FROM (p_kind, p_cron, p_zone, p_every, p_at)
    THEN
        UPDATE livewell.schedule s
        SET kind = p_kind, cron = p_cron, zone = p_zone, every = p_every, at = p_at,
            due_at = v_first, gap = coalesce(p_every, '0'), ended_at = NULL
        WHERE s.name = p_name;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.declare_schedule IS
    'Adds a schedule or changes its rule; an unchanged rule keeps its next slot.';
REVOKE ALL ON FUNCTION livewell.declare_schedule FROM PUBLIC;

-- ── schedule/functions/scheduler/move_schedule.sql ──
-- Set the next slot; without one the schedule has ended.
--
-- Called by: begin_run(), which holds the schedule's row.
CREATE OR REPLACE FUNCTION livewell.move_schedule(p_name text, p_next timestamptz, p_gap interval)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.schedule s
    SET due_at = p_next, gap = p_gap, ended_at = CASE WHEN p_next IS NULL THEN v_now END
    WHERE s.name = p_name;
END
$$;
COMMENT ON FUNCTION livewell.move_schedule IS 'Moves a schedule to its next slot, or ends it.';
REVOKE ALL ON FUNCTION livewell.move_schedule FROM PUBLIC;

-- ── schedule/functions/scheduler/plan_schedule.sql ──
-- Give a cron schedule its first slot.
--
-- Called by: plan_cron; schedule/scheduler.py, which can read cron texts, for a schedule that
--            tick_schedules shows without a slot.
-- The text and the zone come along, so that a slot of an old rule is never given to a new one.
CREATE OR REPLACE FUNCTION livewell.plan_schedule(
    p_name text, p_cron text, p_zone text, p_due timestamptz, p_gap interval
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.schedule s
    SET due_at = p_due, gap = p_gap
    WHERE s.name = p_name
        AND s.kind = 'cron'
        AND s.cron = p_cron
        AND s.zone = p_zone
        AND s.due_at IS NULL
        AND s.ended_at IS NULL;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.plan_schedule IS
    'Sets the first slot of a cron schedule that has none.';
REVOKE ALL ON FUNCTION livewell.plan_schedule FROM PUBLIC;

-- ── schedule/functions/scheduler/record_pulse.sql ──
-- A loop says that it still turns.
--
-- Called by: tick_schedules() for the scheduler itself, and loops such as the due check, every few
--            seconds. p_turns, p_done: since it last said so.
CREATE OR REPLACE FUNCTION livewell.record_pulse(
    p_name text, p_holder text, p_every interval, p_turns bigint, p_done bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    INSERT INTO livewell.pulse AS p (name, holder, every, turns, done, first_at, last_at)
    VALUES (p_name, p_holder, p_every, p_turns, p_done, v_now, v_now)
    ON CONFLICT (name)
    DO UPDATE SET holder = excluded.holder, every = excluded.every,
        turns = p.turns + excluded.turns, done = p.done + excluded.done, last_at = excluded.last_at;
END
$$;
COMMENT ON FUNCTION livewell.record_pulse IS
    'Adds to the one row of a loop: turns, what came of them, and the time.';
REVOKE ALL ON FUNCTION livewell.record_pulse FROM PUBLIC;

-- ── schedule/functions/scheduler/remove_open_schedule.sql ──
-- Forget an open-ended schedule whose work is not wanted any more; a run that is under way has failed.
--
-- Called by: sync_walks(). Its runs stay in the history until their time is over.
CREATE OR REPLACE FUNCTION livewell.remove_open_schedule(p_name text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM FROM livewell.schedule s WHERE s.name = p_name FOR UPDATE;
    PERFORM livewell.fail_open_run(p_name);
    DELETE FROM livewell.schedule s WHERE s.name = p_name AND s.open_ended;
END
$$;
COMMENT ON FUNCTION livewell.remove_open_schedule IS 'Removes an open-ended schedule and fails its run.';
REVOKE ALL ON FUNCTION livewell.remove_open_schedule FROM PUBLIC;

-- ── schedule/functions/scheduler/tick_schedules.sql ──
-- What is due now, of the schedules whose handlers the caller has; and for how long nothing will
-- be.
--
-- Called by: schedule/scheduler.py, when the next slot has come, and once a second.
-- Answer:    one row per schedule that is due, was asked for, or has no slot yet, the longest due
--            first; then one row without a name, with the seconds until the next slot (NULL: none
--            is known).
-- Which slots are due is decided here, on the database's clock. The other things a turn does: runs
-- without a lease become crashed, the schedules are marked as seen, and the scheduler's own pulse
-- is kept.
-- Why SKIP LOCKED: a mark that somebody else is making need not be made twice.
CREATE OR REPLACE FUNCTION livewell.tick_schedules(
    p_names text[], p_holder text, p_limit integer DEFAULT 100
)
RETURNS TABLE (
    name text, kind text, cron text, zone text, every interval, missed text, due_at timestamptz,
    asked_at timestamptz, now timestamptz, wait_seconds float8
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    c_pulse CONSTANT interval := '5 seconds';
    v_now   timestamptz;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'schedules run on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    PERFORM livewell.crash_runs(p_limit);
    v_now := livewell.now();
    -- Not only older than: a clock that was set back must not keep an old mark for ever.
    IF NOT EXISTS (
        SELECT FROM livewell.pulse p
        WHERE p.name = 'schedule.loop' AND p.last_at BETWEEN v_now - c_pulse AND v_now
    ) THEN
        PERFORM livewell.record_pulse('schedule.loop', p_holder, c_pulse, 1, 0);
        UPDATE livewell.schedule s
        SET seen_at = v_now
        WHERE s.name = ANY (
            ARRAY(
                SELECT m.name FROM livewell.schedule m
                WHERE m.name = ANY (p_names)
                ORDER BY m.name FOR NO KEY UPDATE SKIP LOCKED
            )
        );
    ELSIF EXISTS (
        SELECT FROM livewell.schedule s
        WHERE s.name = ANY (p_names)
            AND s.seen_at NOT BETWEEN v_now - interval '20 seconds' AND v_now
    ) THEN
        UPDATE livewell.schedule s
        SET seen_at = v_now
        WHERE s.name = ANY (
            ARRAY(
                SELECT m.name FROM livewell.schedule m
                WHERE m.name = ANY (p_names)
                ORDER BY m.name FOR NO KEY UPDATE SKIP LOCKED
            )
        );
    END IF;
    RETURN QUERY
    SELECT s.name, s.kind, s.cron, s.zone, s.every, s.missed, s.due_at, s.asked_at, v_now,
        NULL::float8
    FROM livewell.schedule s
    WHERE s.name = ANY (p_names) AND s.held_at IS NULL
        AND (
            s.asked_at IS NOT NULL OR s.ended_at IS NULL AND (s.due_at <= v_now OR s.due_at IS NULL)
        )
    ORDER BY s.due_at, s.name LIMIT p_limit;
    RETURN QUERY
    SELECT NULL::text, NULL::text, NULL::text, NULL::text, NULL::interval, NULL::text,
        NULL::timestamptz, NULL::timestamptz, v_now,
        extract(epoch FROM min(s.due_at) - v_now)::float8
    FROM livewell.schedule s
    WHERE s.name = ANY (p_names) AND s.held_at IS NULL AND s.ended_at IS NULL AND s.due_at > v_now;
END
$$;
COMMENT ON FUNCTION livewell.tick_schedules IS
    'The schedules that are due now, and the seconds until the next one is.';
REVOKE ALL ON FUNCTION livewell.tick_schedules FROM PUBLIC;

-- ── schedule/functions/singleton/acquire_singleton.sql ──
-- Become, or stay, the only one who does this work; or learn who is, and for how long.
--
-- Called by: take_run; schedule/singleton.py, every third of the lease. p_fence: the fence of the
--            term we believe to hold; NULL when we hold none.
-- Answer:    held     ours until now + lease, under this fence
--            other    somebody else's: ask again in wait_seconds
-- A frozen holder cannot renew an old term: once it has run out, or has gone to somebody else, the
-- old fence opens nothing; asking anew gives a new fence.
-- Those who wait only read: the row is locked by its holder and by who finds it expired. Work under
-- the singleton locks the row first (hold_singleton), so a change of hands waits for it.
CREATE OR REPLACE FUNCTION livewell.acquire_singleton(
    p_name text, p_holder text, p_fence bigint, p_lease interval
)
RETURNS TABLE (answer text, fence bigint, holder text, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_begun timestamptz := livewell.now();      -- for the look without a lock
    v_now   timestamptz;
    v_row   livewell.singleton;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'singletons are held on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    IF p_lease NOT BETWEEN interval '100 ms' AND interval '1 hour' THEN
        RAISE EXCEPTION 'a lease of %: 100 ms to 1 hour are allowed', p_lease
            USING ERRCODE = 'LW003';
    END IF;
    SELECT * INTO v_row FROM livewell.singleton s WHERE s.name = p_name;
    IF FOUND AND v_row.expires_at > v_begun AND v_row.fence IS DISTINCT FROM p_fence THEN
        RETURN QUERY
        SELECT 'other', NULL::bigint, v_row.holder,
            extract(epoch FROM v_row.expires_at - v_begun)::float8;
        RETURN;
    END IF;
    IF v_row.name IS NULL THEN
        INSERT INTO livewell.singleton (name, fence, holder, acquired_at, renewed_at, expires_at)
        VALUES (p_name, 0, p_holder, '-infinity', '-infinity', '-infinity')
        ON CONFLICT (name) DO NOTHING;
    END IF;
    SELECT * INTO v_row FROM livewell.singleton s WHERE s.name = p_name FOR NO KEY UPDATE;
    v_now := livewell.now();
    IF v_row.expires_at > v_now THEN
        IF v_row.fence IS DISTINCT FROM p_fence THEN
            RETURN QUERY
            SELECT 'other', NULL::bigint, v_row.holder,
                extract(epoch FROM v_row.expires_at - v_now)::float8;
            RETURN;
        END IF;
        UPDATE livewell.singleton s
        SET renewed_at = v_now, expires_at = v_now + p_lease
        WHERE s.name = p_name;
        RETURN QUERY SELECT 'held', v_row.fence, v_row.holder, NULL::float8;
        RETURN;
    END IF;
    -- After a failover above all terms of before, whatever of them this server knows.
    v_row.fence := greatest(
        v_row.fence + 1, pg_catalog.pg_sequence_last_value('livewell.failover_seq') * 4294967296
    );
    UPDATE livewell.singleton s
    SET fence = v_row.fence, holder = p_holder, acquired_at = v_now, renewed_at = v_now,
        expires_at = v_now + p_lease
    WHERE s.name = p_name;
    RETURN QUERY SELECT 'held', v_row.fence, p_holder, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.acquire_singleton IS
    'Acquires or renews a singleton, or says who holds it and for how long.';
REVOKE ALL ON FUNCTION livewell.acquire_singleton FROM PUBLIC;

-- ── schedule/functions/singleton/hold_singleton.sql ──
-- Lock a singleton for the rest of this transaction, if the term is ours and has not run out.
--
-- Called by: dispatch_due, dispatch_scheduled, finish_run, renew_run; every function that does work
--            under a singleton, first of all. A change of hands waits for this lock, so two terms
--            never work at once (contract 3).
CREATE OR REPLACE FUNCTION livewell.hold_singleton(p_name text, p_fence bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_expires   timestamptz;
BEGIN
    SELECT s.expires_at INTO v_expires FROM livewell.singleton s
    WHERE s.name = p_name AND s.fence = p_fence
    FOR NO KEY UPDATE;
    v_now := livewell.now();
    RETURN coalesce(v_expires > v_now, false);
END
$$;
COMMENT ON FUNCTION livewell.hold_singleton IS
    'Locks a singleton that is ours; false when it is not, or not any more.';
REVOKE ALL ON FUNCTION livewell.hold_singleton FROM PUBLIC;

-- ── schedule/functions/singleton/release_singleton.sql ──
-- Give a singleton back before its lease ends, so that the next one need not wait for it.
--
-- Called by: finish_run, take_run; whoever stops in good order. Only its holder can: the fence must
--            be that of the present term.
CREATE OR REPLACE FUNCTION livewell.release_singleton(p_name text, p_fence bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.singleton s
    SET expires_at = '-infinity'
    WHERE s.name = p_name AND s.fence = p_fence;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.release_singleton IS
    'Ends the present term of a singleton; false when it is not ours.';
REVOKE ALL ON FUNCTION livewell.release_singleton FROM PUBLIC;

-- ── schedule/functions/singleton/state_leases.sql ──
-- Who holds which singleton and since when, and when each internal tick last ran.
--
-- Called by: system_state. Exact: there are as many rows as there are kinds of periodic work.
CREATE OR REPLACE FUNCTION livewell.state_leases()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object(
        'how', 'exact',
        'singletons', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', s.name, 'holder', s.holder, 'fence', s.fence,
                        'held', s.expires_at > v_now, 'released', s.expires_at = '-infinity',
                        'held_seconds', CASE
                            WHEN s.expires_at > v_now
                                THEN extract(epoch FROM v_now - s.acquired_at)::float8
                        END,
                        'renewed_seconds', CASE
                            WHEN s.renewed_at > '-infinity'
                                THEN extract(epoch FROM v_now - s.renewed_at)::float8
                        END,
                        'expired_seconds', CASE
                            WHEN s.expires_at <= v_now AND s.expires_at > '-infinity'
                                THEN extract(epoch FROM v_now - s.expires_at)::float8
                        END
                    ) ORDER BY s.name
                ),
                '[]'
            )
            FROM (SELECT * FROM livewell.singleton o ORDER BY o.name LIMIT 1000) s
        ),
        'ticks', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', t.name,
                        'last_seconds', extract(epoch FROM v_now - t.last_at)::float8, 'n', t.n
                    ) ORDER BY t.name
                ),
                '[]'
            )
            FROM (SELECT * FROM livewell.tick o ORDER BY o.name LIMIT 1000) t
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_leases IS
    'Singletons with their holders, and internal ticks, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_leases FROM PUBLIC;

-- ── schedule/grants.sql ──
-- Who may do what with singletons, schedules and runs.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables. Workers run schedules; operators look, ask, pause and remove, and so do workers, for a
-- program that has no other login. The hub serves the watchdog, which is told names and seconds and
-- comes without a login.
table pulse                         -        r        rd       rawd     r
table run                           -        r(schedule,state,due_at)  r        rawd     r
table schedule                      -        r        rw(asked_at,paused_at)d  rawd     r
table singleton                     -        -        r        raw      r
table tick                          -        r        -        -        -

-- functions: admin
function awaited_slot               -        X        X        X        X
function late_at                    -        X        X        X        X
function late_schedules             -        X        X        X        X
function list_runs                  -        -        X        X        X
function list_schedules             -        -        X        X        X
function pause_schedule             -        -        X        X        -
function remove_schedule            -        -        X        X        -
function state_schedules            -        -        X        X        X

-- functions: run
function ask_run                    -        -        X        X        -
function begin_asked_run            -        -        -        X        -
function begin_run                  -        -        -        X        -
function count_open_run             -        -        -        X        -
function crash_runs                 -        -        -        X        -
function fail_open_run              -        -        -        X        -
function finish_run                 -        -        -        X        -
function open_run                   -        -        -        X        -
function prune_runs                 -        -        -        X        -
function renew_run                  -        -        -        X        -
function skip_slots                 -        -        -        X        -
function take_run                   -        -        -        X        -

-- functions: scheduler
function declare_open_schedule      -        -        -        X        -
function declare_schedule           -        -        -        X        -
function move_schedule              -        -        -        X        -
function plan_schedule              -        -        -        X        -
function record_pulse               -        -        -        X        -
function remove_open_schedule       -        -        -        X        -
function tick_schedules             -        -        -        X        -

-- functions: singleton
function acquire_singleton          -        -        -        X        -
function hold_singleton             -        -        -        X        -
function release_singleton          -        -        -        X        -
function state_leases               -        -        X        X        X

-- functions of other packages
function redact                     -        -        -        X        -
$matrix$);

-- ── refresh/001_tables.sql ──
-- Refresh: what there is to fetch (upstream, data_type), how fresh it is (ledger), who looks at it (viewer_session, subscription), and which keys are refreshed by schedule (universe).
-- The data itself is in one table per type, in schema livewell_data. Never edited after release; changes are a new numbered file.

-- No secret is stored: credentials are names, and what a name stands for is read from the environment by the worker.
CREATE TABLE livewell.upstream (
    name            text COLLATE "C" PRIMARY KEY,       -- also the name of its limiter; its queues are refresh.<name> and refresh.<name>.<pool>
    base_url        text        NOT NULL,
    credential_in   text COLLATE "C",                   -- header:<name> or query:<name>; NULL: it wants none
    vocabulary      text COLLATE "C" NOT NULL DEFAULT 'plain',  -- how its refusals are read: plain, fmp
    counts          text COLLATE "C" NOT NULL DEFAULT 'larger', -- which bytes the budget counts
    paused_at       timestamptz,
    definition      jsonb       NOT NULL,               -- the [upstream] table of its file, as it was applied
    version         bigint      NOT NULL,
    applied_at      timestamptz NOT NULL,
    CONSTRAINT upstream_name_check CHECK (name ~ '^[a-z][a-z0-9_]{0,30}$'),
    CONSTRAINT upstream_url_check CHECK (base_url ~ '^https?://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*$'),
    CONSTRAINT upstream_credential_check CHECK (credential_in ~ '^(header|query):[A-Za-z0-9_-]{1,64}$'),
    CONSTRAINT upstream_vocabulary_check CHECK (vocabulary IN ('plain', 'fmp')),
    CONSTRAINT upstream_counts_check CHECK (counts IN ('wire', 'decoded', 'larger'))
);
COMMENT ON TABLE livewell.upstream IS 'Outside APIs: where they are, and how their answers are counted and read. Limits are those of the limiter of the same name.';

CREATE TYPE livewell.staleness_rule AS ENUM (
    'age',          -- stale when the last check is older than the time to live
    'session',      -- while the exchange is closed, a value from after the last close stays fresh; while it is open: age
    'after_event'   -- as age, but stale at once when the event date that was written with the value has passed and the last check was before it
);
COMMENT ON TYPE livewell.staleness_rule IS 'The closed list of rules that say when a value is stale (R5).';

CREATE TABLE livewell.data_type (
    name                text COLLATE "C" PRIMARY KEY,   -- also the name of its table in livewell_data
    upstream            text COLLATE "C" NOT NULL REFERENCES livewell.upstream,
    ttl                 interval    NOT NULL,           -- no default, anywhere (contract 13)
    negative_ttl        interval    NOT NULL,           -- how long "there is no such key" is believed
    strategy            text COLLATE "C" NOT NULL,
    cron                text,                           -- for scheduled types, with its zone
    zone                text COLLATE "C",
    cron_due_at         timestamptz,                    -- the next walk through the universe
    cron_cursor         text COLLATE "C",               -- where the walk is; NULL: none is under way
    rule                livewell.staleness_rule NOT NULL,
    calendar            text COLLATE "C",
    max_source_age      interval,                       -- older source times are lagging; NULL: not judged
    has_source_time     boolean     NOT NULL,           -- without one a value is unverifiable at best
    rows_kind           text COLLATE "C" NOT NULL,      -- one: one row per key; set: replaced as a whole; series: rows are added and updated, never removed
    pool                text COLLATE "C",               -- its queue is refresh.<upstream>.<pool>: for workers restricted to some types
    keys_max            smallint    NOT NULL DEFAULT 1, -- keys that one call may ask for; 1: no batch endpoint
    key_pattern         text        NOT NULL,
    size_estimate       bigint      NOT NULL,           -- bytes per key, until measured
    prefetch            boolean     NOT NULL DEFAULT false,
    paused_at           timestamptz,
    parked_reason       text,                           -- the plan does not include this endpoint; NULL: not parked
    definition          jsonb       NOT NULL,           -- the whole file, as it was applied
    columns             jsonb       NOT NULL,           -- [{name, type, nullable, key}] in order: what the table has
    version             bigint      NOT NULL,           -- a job that was made for another one is not stored
    applied_at          timestamptz NOT NULL,
    CONSTRAINT data_type_name_check CHECK (name ~ '^[a-z][a-z0-9_]{0,47}$'),
    CONSTRAINT data_type_ttl_check CHECK (ttl > interval '0' AND ttl <= interval '400 days' AND negative_ttl > interval '0' AND negative_ttl <= interval '400 days'),
    CONSTRAINT data_type_strategy_check CHECK (strategy IN ('on_demand', 'scheduled') AND (strategy = 'scheduled') = (cron IS NOT NULL) AND (cron IS NULL) = (zone IS NULL)),
    CONSTRAINT data_type_rule_check CHECK ((rule = 'session') = (calendar IS NOT NULL)),
    CONSTRAINT data_type_source_check CHECK (max_source_age > interval '0' AND (max_source_age IS NULL OR has_source_time)),
    CONSTRAINT data_type_rows_check CHECK (rows_kind IN ('one', 'set', 'series')),
    CONSTRAINT data_type_pool_check CHECK (pool ~ '^[a-z][a-z0-9_]{0,20}$'),
    CONSTRAINT data_type_keys_check CHECK (keys_max BETWEEN 1 AND 1000),
    CONSTRAINT data_type_pattern_check CHECK (octet_length(key_pattern) BETWEEN 3 AND 200 AND ('' ~ key_pattern) IS NOT NULL),    -- a pattern that cannot be read fails here, not at a subscriber
    CONSTRAINT data_type_size_check CHECK (size_estimate BETWEEN 1 AND 1000000000)
);
COMMENT ON TABLE livewell.data_type IS 'The registry: one row per kind of data (R1). Written by `livewell types apply` as the owner; nothing in a row becomes SQL.';

-- One row per (type, key) that anybody ever asked for: the only truth about freshness. Fixed width first.
CREATE TABLE livewell.ledger (
    version             bigint      NOT NULL DEFAULT 0, -- of the value: grows when its content changes
    status_version      bigint      NOT NULL DEFAULT 0, -- grows whenever anything a viewer is shown changes: value, check, failure
    fetched_at          timestamptz,                    -- when the content that is stored was fetched
    checked_at          timestamptz,                    -- when it was last confirmed by an answer
    changed_at          timestamptz,                    -- when the content last became different
    source_at           timestamptz,                    -- what the source says of its own time
    event_at            timestamptz,                    -- input of the rule after_event
    status_at           timestamptz NOT NULL,           -- of status_version: streams read what changed since
    due_at              timestamptz,                    -- an index, never a verdict; NULL only when nobody watches (parked)
    retry_at            timestamptz,                    -- not before this, whoever watches (backed off)
    demanded_at         timestamptz,                    -- somebody waits for it by read-through
    wanted_at           timestamptz,                    -- somebody last watched or read it: prefetch goes by this
    ttl_override        interval,
    failures            integer     NOT NULL DEFAULT 0, -- in a row, each after all its attempts
    failing_since       timestamptz,
    missing             boolean     NOT NULL DEFAULT false,     -- the upstream says there is no such key: believed for negative_ttl from checked_at
    data_type           text COLLATE "C" NOT NULL,
    key                 text COLLATE "C" NOT NULL,
    upstream            text COLLATE "C" NOT NULL,
    content_hash        bytea,
    etag                text,
    last_modified       text,
    reason              text COLLATE "C",               -- of the last failure: a word of the closed list
    error               text,                           -- and what it looked like, redacted and bounded
    CONSTRAINT ledger_pkey PRIMARY KEY (data_type, key),
    CONSTRAINT ledger_ttl_check CHECK (ttl_override > interval '0' AND ttl_override <= interval '400 days'),
    CONSTRAINT ledger_key_check CHECK (octet_length(key) BETWEEN 1 AND 200)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.ledger IS 'How fresh each key is, and when it is to be looked at again (R5).';
CREATE INDEX ledger_due_idx ON livewell.ledger (upstream, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ledger_status_idx ON livewell.ledger (status_at);
CREATE INDEX ledger_override_idx ON livewell.ledger (data_type, key) WHERE ttl_override IS NOT NULL;
-- Dispatch asks which of its keys died since it last looked.
CREATE INDEX dead_job_refresh_idx ON livewell.dead_job (unique_key, died_at) WHERE kind = 'livewell.refresh';

CREATE TABLE livewell.viewer (
    user_id         text COLLATE "C" PRIMARY KEY,       -- the row that caps are counted under
    subscriptions   integer     NOT NULL DEFAULT 0,
    cold_minute     timestamptz,                        -- how many keys that nobody knew this user asked for in this minute
    cold_reads      integer     NOT NULL DEFAULT 0,
    CONSTRAINT viewer_user_check CHECK (octet_length(user_id) BETWEEN 1 AND 200),
    CONSTRAINT viewer_subscriptions_check CHECK (subscriptions >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.viewer IS 'One row per user with caps: its lock makes "count, then insert" safe.';

CREATE TABLE livewell.viewer_session (
    id              uuid        NOT NULL,               -- random, made by the caller
    seen_at         timestamptz NOT NULL,               -- moved only by messages that came from the client
    created_at      timestamptz NOT NULL,
    subs_version    bigint      NOT NULL DEFAULT 0,     -- grows with every change of its subscriptions: tells the server that streams to it
    user_id         text COLLATE "C" NOT NULL,          -- anonymous: "session:" and the id, so that each counts for itself
    CONSTRAINT viewer_session_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.viewer_session IS 'One heartbeat row per client; older than five minutes it does not count, swept or not (R3).';
CREATE INDEX viewer_session_seen_idx ON livewell.viewer_session (seen_at);
CREATE INDEX viewer_session_user_idx ON livewell.viewer_session (user_id);

CREATE TABLE livewell.subscription (
    session_id      uuid        NOT NULL,
    data_type       text COLLATE "C" NOT NULL,
    key             text COLLATE "C" NOT NULL,
    user_id         text COLLATE "C" NOT NULL,
    CONSTRAINT subscription_pkey PRIMARY KEY (session_id, data_type, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.subscription IS 'Who looks at what. Viewers of a key are distinct users with a session seen within five minutes.';
CREATE INDEX subscription_key_idx ON livewell.subscription (data_type, key) INCLUDE (user_id, session_id);

CREATE TABLE livewell.universe (
    data_type       text COLLATE "C" NOT NULL REFERENCES livewell.data_type ON DELETE CASCADE,
    key             text COLLATE "C" NOT NULL,
    active          boolean     NOT NULL DEFAULT true,
    added_at        timestamptz NOT NULL,
    CONSTRAINT universe_pkey PRIMARY KEY (data_type, key),
    CONSTRAINT universe_key_check CHECK (octet_length(key) BETWEEN 1 AND 200)
);
COMMENT ON TABLE livewell.universe IS 'The keys that scheduled types walk through (R19).';

CREATE TABLE livewell.exchange_session (
    calendar        text COLLATE "C" NOT NULL,
    opens_at        timestamptz NOT NULL,
    closes_at       timestamptz NOT NULL,
    CONSTRAINT exchange_session_pkey PRIMARY KEY (calendar, opens_at),
    CONSTRAINT exchange_session_check CHECK (opens_at < closes_at)
);
COMMENT ON TABLE livewell.exchange_session IS 'When exchanges are open, precomputed (X7).';

-- Counted by reason, so that every rejected answer is seen (R14, R23). One row per type, reason and hour.
CREATE TABLE livewell.refresh_count (
    hour            timestamptz NOT NULL,
    data_type       text COLLATE "C" NOT NULL,
    outcome         text COLLATE "C" NOT NULL,          -- stored, unchanged, corrected (same source time, other content), older, missing, type_changed, fenced, or the reason of a rejection
    n               bigint      NOT NULL,
    wire_bytes      bigint      NOT NULL,
    decoded_bytes   bigint      NOT NULL,
    CONSTRAINT refresh_count_pkey PRIMARY KEY (hour, data_type, outcome)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.refresh_count IS 'What became of refreshes, by type and outcome.';

REVOKE ALL ON TYPE livewell.staleness_rule FROM PUBLIC;

-- The tables of the types, made and altered by livewell.apply_type() only. The owner may not create schemas, so whoever migrates makes it and hands it over.
DO $data$
DECLARE
    v_owner text := current_user;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell_data') THEN
        SET LOCAL ROLE NONE;
        EXECUTE format('CREATE SCHEMA livewell_data AUTHORIZATION %I', v_owner);
        EXECUTE format('SET LOCAL ROLE %I', v_owner);
    ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner WHERE n.nspname = 'livewell_data' AND r.rolname = v_owner) THEN
        RAISE EXCEPTION 'schema livewell_data exists and is not %''s', v_owner USING HINT = 'Rename it, or make it theirs';
    END IF;
    COMMENT ON SCHEMA livewell_data IS 'Livewell: one table per type of data. Changed only by: livewell types apply.';
END
$data$;

-- ── refresh/002_trust.sql ──
-- 0.6.0: order by viewers over everything that is due, and what a reading needs to turn by itself.
-- Never edited after release; changes are a new numbered file.

-- What `why` says of answers that brought nothing: how many in a row, when the last came, and since when the upstream answers with older data than is stored (X8).
ALTER TABLE livewell.ledger ADD COLUMN tries integer NOT NULL DEFAULT 0;        -- answers since the last good one: refused, failed or older
ALTER TABLE livewell.ledger ADD COLUMN tried_at timestamptz;                    -- of the last of them
ALTER TABLE livewell.ledger ADD COLUMN older_since timestamptz;                 -- the first of a row of older answers
ALTER TABLE livewell.ledger ADD COLUMN older_source_at timestamptz;             -- what the source says of its time in the last one

-- The order by viewers and waiting holds over everything that is due (X2): of each class the oldest are read, see due_candidates. Existing rows count as watched by one until they are counted.
ALTER TABLE livewell.ledger ADD COLUMN demand_class smallint NOT NULL DEFAULT 1;    -- 0: nobody when last counted; n: 2ⁿ⁻¹ to 2ⁿ - 1 viewers, up to 10; negative: the same of a scheduled type (background). A hint, never a count
CREATE INDEX ledger_class_idx ON livewell.ledger (upstream, demand_class, due_at) WHERE due_at IS NOT NULL;

-- R3: strangers share budgets of keys that nobody knew, by public key and by address, whatever number of sessions they open. Names are hashed with a salt of this database: no address is stored.
ALTER TABLE livewell.viewer_session ADD COLUMN origin text;        -- of somebody anonymous: hashes of its public key and its address; NULL: a user, or opened by 0.5.0
CREATE TABLE livewell.cold_salt (
    one             boolean     PRIMARY KEY DEFAULT true,
    salt            bytea       NOT NULL,
    CONSTRAINT cold_salt_one_check CHECK (one)
);
COMMENT ON TABLE livewell.cold_salt IS 'What names of strangers are hashed with; one row, made once.';
INSERT INTO livewell.cold_salt (salt) VALUES (decode(replace(concat(gen_random_uuid(), gen_random_uuid()), '-', ''), 'hex'));
CREATE TABLE livewell.cold_budget (
    minute          timestamptz NOT NULL,
    spent           integer     NOT NULL,
    name            bytea       NOT NULL,
    CONSTRAINT cold_budget_pkey PRIMARY KEY (name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.cold_budget IS 'Keys that nobody knew, asked for in this minute by the strangers of one public key or one address (R3).';
DO $drop$
BEGIN
    IF to_regprocedure('livewell.open_session(uuid, text, integer)') IS NOT NULL THEN
        DROP FUNCTION livewell.open_session(uuid, text, integer);
    END IF;
END
$drop$;
-- What prune_refresh looks for. status_at changes whenever version does, so updates lose nothing by it.
CREATE INDEX ledger_empty_idx ON livewell.ledger (status_at) WHERE version = 0;

-- ── refresh/003_rights.sql ──
-- 0.7.0: ids of sessions are stored as hashes, anonymous sessions belong to the public key that made them, and strangers have shares of a key's sessions.
-- Never edited after release; changes are a new numbered file.

-- L12: which public key an anonymous session was opened with; NULL: a user's, or opened before 0.7.0, which any public key may go on with until it ends.
ALTER TABLE livewell.viewer_session ADD COLUMN public_key text COLLATE "C";

-- R3: how many sessions are open, by public key and by the addresses of each. Names are those of viewer_session.origin: the hash of the key, and of the address behind it.
CREATE TABLE livewell.session_share (
    sessions        integer     NOT NULL,
    name            text COLLATE "C" PRIMARY KEY,
    CONSTRAINT session_share_sessions_check CHECK (sessions >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.session_share IS 'Open sessions of strangers, by public key and by key and address: its locks make "count, then insert" safe (R3).';

-- L4: sessions that are open go on under the hash of their id (functions/session_hash.sql). Writers wait until this is committed. A call that waits here began before and looks for the plain id: it is
-- answered that there is no such session, and its client opens another, as after five minutes of silence. As whoever migrates: row security shows livewell_owner no rows, see grants.sql.
DO $hash$
DECLARE
    v_owner text := current_user;
BEGIN
    SET LOCAL ROLE NONE;
    LOCK TABLE livewell.viewer_session, livewell.viewer, livewell.subscription IN SHARE ROW EXCLUSIVE MODE;
    UPDATE livewell.subscription SET
        session_id = encode(substr(sha256(uuid_send(session_id)), 1, 16), 'hex')::uuid,
        user_id = CASE WHEN user_id = 'session:' || session_id THEN 'session:' || encode(substr(sha256(uuid_send(session_id)), 1, 16), 'hex')::uuid ELSE user_id END;
    UPDATE livewell.viewer w SET user_id = 'session:' || encode(substr(sha256(uuid_send(substr(w.user_id, 9)::uuid)), 1, 16), 'hex')::uuid
    WHERE w.user_id ~ '^session:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';
    UPDATE livewell.viewer_session SET
        id = encode(substr(sha256(uuid_send(id)), 1, 16), 'hex')::uuid,
        user_id = CASE WHEN user_id = 'session:' || id THEN 'session:' || encode(substr(sha256(uuid_send(id)), 1, 16), 'hex')::uuid ELSE user_id END;
    INSERT INTO livewell.session_share (name, sessions)
    SELECT n, count(*) FROM livewell.viewer_session s CROSS JOIN LATERAL unnest(ARRAY[split_part(s.origin, ' ', 1), s.origin]) AS n WHERE s.origin IS NOT NULL GROUP BY n;
    EXECUTE format('SET LOCAL ROLE %I', v_owner);
END
$hash$;

-- What processes before 0.6.0 asked; read_readings has followed. A new database does not have them.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.read_changes(text[], text[], bigint[], text[], bigint[])') IS NOT NULL THEN
        DROP FUNCTION livewell.read_changes(text[], text[], bigint[], text[], bigint[]);
    END IF;
    IF to_regprocedure('livewell.read_states(text[], text[], bigint[], text[], bigint[])') IS NOT NULL THEN
        DROP FUNCTION livewell.read_states(text[], text[], bigint[], text[], bigint[]);
    END IF;
    -- refresh_jobs has followed. No process called these two: only functions did, and those are made anew.
    IF to_regprocedure('livewell.refresh_job(livewell.data_type, text, integer)') IS NOT NULL THEN
        DROP FUNCTION livewell.refresh_job(livewell.data_type, text, integer);
    END IF;
    IF to_regprocedure('livewell.refresh_payloads(text[], text[])') IS NOT NULL THEN
        DROP FUNCTION livewell.refresh_payloads(text[], text[]);
    END IF;
END
$drop$;

-- ── refresh/004_walks.sql ──
-- 0.7.0: walks of scheduled types are open-ended schedules (docs/adr/0016-walks-are-schedules.md).
-- Never edited after release; changes are a new numbered file.

-- A walk that is under way goes on with its run, and its schedule is planned anew. The others keep the
-- slot they waited for. data_type.cron_due_at is not used any more.
UPDATE livewell.schedule SET open_ended = true WHERE internal AND name LIKE 'walk.%';
INSERT INTO livewell.schedule AS s (
    name, kind, cron, zone, missed, timeout, internal, open_ended, due_at, seen_at, created_at)
SELECT 'walk.' || t.name, 'cron', t.cron, t.zone, 'once', interval '1 day', true, true, w.due_at,
       now(), now()
FROM livewell.data_type t
CROSS JOIN LATERAL (
    SELECT CASE WHEN NOT EXISTS (
        SELECT FROM livewell.run r WHERE r.schedule = 'walk.' || t.name AND r.state = 'running'
    ) THEN t.cron_due_at END AS due_at) w
WHERE t.strategy = 'scheduled' AND octet_length(t.cron) <= 100 AND octet_length(t.zone) <= 100
ON CONFLICT (name) DO UPDATE SET cron = excluded.cron, zone = excluded.zone, due_at = excluded.due_at
WHERE s.open_ended;

-- ── refresh/functions/due/begin_walk.sql ──
-- Begin the walk of a scheduled type whose slot has come, as the due check of 0.6.0 does it. Goes with 0.8.
--
-- Called by: dispatch_scheduled(), for workers of 0.6.0: their schedulers do not know walks, so a fleet
--            that was not replaced yet would begin none. p_next: the slot after this one.
CREATE OR REPLACE FUNCTION livewell.begin_walk(p_type text, p_next timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_holder CONSTANT text := 'a worker of 0.6.0';
    v_now   timestamptz := livewell.now();
    v_row   livewell.schedule;
BEGIN
    SELECT * INTO v_row FROM livewell.schedule s
    WHERE s.name = 'walk.' || p_type AND s.open_ended AND s.held_at IS NULL;
    IF v_row.asked_at IS NOT NULL THEN
        PERFORM livewell.begin_asked_run(v_row.name, c_holder, interval '1 minute');
    ELSIF v_row.due_at <= v_now THEN
        PERFORM livewell.begin_run(
            v_row.name, c_holder, v_row.due_at, v_row.due_at, p_next, v_row.gap, 0, NULL,
            interval '1 minute');
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.begin_walk IS 'Begins a walk that is due, for workers of 0.6.0.';
REVOKE ALL ON FUNCTION livewell.begin_walk FROM PUBLIC;

-- ── refresh/functions/due/choose_refreshes.sql ──
-- Which of the keys that are due go now, in which order, lane and call; what cannot be served is
-- set aside.
--
-- Called by: dispatch_due, with the page of due_candidates and the room of dispatch_room.
-- Steps:     order_refreshes (the order, and why it is that), then each key in its turn: set aside,
--            left over, or into a call.
-- Index:     ledger_pkey for what is set aside.
-- Answer:    types, keys, lanes and calls in order; left_over: how many wanted to go and could not;
--            reason: budget, if that kept one back.
-- The planner settings of dispatch_due hold here too: to set them again takes 45 µs.
CREATE OR REPLACE FUNCTION livewell.choose_refreshes(
    p_upstream text, p_types text[], p_keys text[], p_dues timestamptz[], p_viewers integer[],
    p_wanted timestamptz[], p_calls integer, p_background_calls integer, p_units bigint,
    p_background_units bigint, p_stalled text[], p_now timestamptz)
RETURNS TABLE (
    types text[], keys text[], lanes integer[], calls integer[], left_over integer, reason text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_by_call   boolean := coalesce((       -- the budget counts calls
        SELECT l.budget_unit = 'calls' FROM livewell.limiter l WHERE l.name = p_upstream), false);
    v_c         record;
    v_used      integer := 0;           -- calls so far
    v_units     bigint := 0;            -- of the budget, so far
    v_unit      bigint;
    v_open      text[] := '{}';         -- batch types with a call that is not full,
    v_call      integer[] := '{}';      -- its number,
    v_free      integer[] := '{}';      -- and its free places
    v_place     integer;
    v_set_types text[] := '{}';         -- cannot be served now
    v_set_keys  text[] := '{}';
    v_set_for   integer[] := '{}';      -- and for how many seconds
BEGIN
    types := '{}';
    keys := '{}';
    lanes := '{}';
    calls := '{}';
    left_over := 0;
    FOR v_c IN
        SELECT *
        FROM livewell.order_refreshes(
            p_upstream, p_types, p_keys, p_dues, p_viewers, p_wanted, p_stalled, p_now)
    LOOP
        IF NOT v_c.can OR v_c.stalled THEN
            v_set_types := v_set_types || v_c.name;
            v_set_keys := v_set_keys || v_c.key;
            v_set_for := v_set_for || (CASE WHEN v_c.can THEN 15 ELSE 300 END);
            CONTINUE;
        END IF;
        v_place := CASE WHEN v_c.keys_max > 1 THEN array_position(v_open, v_c.name || v_c.lane) END;
        v_unit := CASE WHEN NOT v_by_call THEN v_c.size WHEN v_free[v_place] > 0 THEN 0 ELSE 1 END;
        IF v_units + v_unit > (CASE v_c.lane WHEN 0 THEN p_units ELSE p_background_units END) THEN
            left_over := left_over + 1;
            reason := 'budget';
            CONTINUE;
        END IF;
        IF v_place IS NULL OR v_free[v_place] = 0 THEN
            IF v_used >= (CASE v_c.lane WHEN 0 THEN p_calls ELSE p_background_calls END) THEN
                left_over := left_over + 1;
                -- There is no call left, nor a place in one.
                EXIT WHEN v_c.lane = 1 OR NOT (0 < ANY (v_free));
                CONTINUE;
            END IF;
            v_used := v_used + 1;
            IF v_c.keys_max > 1 THEN
                v_place := coalesce(v_place, cardinality(v_open) + 1);
                v_open[v_place] := v_c.name || v_c.lane;
                v_call[v_place] := v_used;
                v_free[v_place] := v_c.keys_max;
            END IF;
        END IF;
        IF v_place IS NOT NULL THEN
            v_free[v_place] := v_free[v_place] - 1;
        END IF;
        v_units := v_units + v_unit;
        types := types || v_c.name;
        keys := keys || v_c.key;
        lanes := lanes || v_c.lane;
        calls := calls || coalesce(v_call[v_place], v_used);
    END LOOP;

    IF cardinality(v_set_keys) > 0 THEN
        UPDATE livewell.ledger l SET due_at = p_now + g.seconds * interval '1 second'
        FROM unnest(v_set_types, v_set_keys, v_set_for) AS g (name, key, seconds)
        WHERE l.data_type = g.name AND l.key = g.key AND l.ctid = ANY (ARRAY(
            SELECT s.ctid FROM unnest(v_set_types, v_set_keys) AS k (name, key)
            JOIN livewell.ledger s ON s.data_type = k.name AND s.key = k.key
            FOR NO KEY UPDATE OF s SKIP LOCKED));
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.choose_refreshes IS
    'Which due keys go now, by viewers and waiting, and in which lane and call; sets aside what '
    'cannot.';
REVOKE ALL ON FUNCTION livewell.choose_refreshes FROM PUBLIC;

-- ── refresh/functions/due/classify_keys.sql ──
-- Write the class of keys whose viewers were counted, where it is another one than before.
--
-- Called by: due_candidates, recount_viewers. Index: ledger_pkey.
-- Why SKIP LOCKED: a class is a hint, and whoever holds the row writes it; it is counted again.
CREATE OR REPLACE FUNCTION livewell.classify_keys(
    p_types text[], p_keys text[], p_classes integer[], p_viewers integer[])
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    c_bounds    CONSTANT integer[] := '{1,2,4,8,16,32,64,128,256,512}';
    -- Types; the few of them are read once: joined, they cost 34 ms of 97 for 500 keys.
    v_scheduled text[];
    v_new       record;                 -- what differs, as arrays
    v_written   integer := 0;
BEGIN
    v_scheduled := ARRAY(
        SELECT d.name FROM livewell.data_type d
        WHERE d.strategy = 'scheduled' AND d.name = ANY (p_types));
    SELECT array_agg(c.name) AS types, array_agg(c.key) AS keys, array_agg(c.class) AS classes
    INTO v_new FROM (
        SELECT g.name, g.key, g.class AS was,
               width_bucket(g.viewers, c_bounds)
                   * CASE WHEN g.name = ANY (v_scheduled) THEN -1 ELSE 1 END AS class
        FROM unnest(p_types, p_keys, p_classes, p_viewers) AS g (name, key, class, viewers)) c
    WHERE c.class <> c.was;
    IF v_new.keys IS NOT NULL THEN
        -- LATERAL and the row's own place: by the key, then by the row, whatever the statistics
        -- say.
        UPDATE livewell.ledger l SET demand_class = x.class
        FROM (
            SELECT g.class, r.place
            FROM unnest(v_new.types, v_new.keys, v_new.classes) AS g (name, key, class)
              CROSS JOIN LATERAL (
                  SELECT o.ctid AS place FROM livewell.ledger o
                  WHERE o.data_type = g.name AND o.key = g.key FOR NO KEY UPDATE SKIP LOCKED) r
              OFFSET 0) x
        WHERE l.ctid = x.place;
        GET DIAGNOSTICS v_written = ROW_COUNT;
    END IF;
    RETURN v_written;
END
$$;
COMMENT ON FUNCTION livewell.classify_keys IS
    'Writes the class of counted keys where it changed; answers how many.';
REVOKE ALL ON FUNCTION livewell.classify_keys FROM PUBLIC;

-- ── refresh/functions/due/credential_room.sql ──
-- What the credentials of a limiter allow together in the next two seconds: calls and units for
-- each lane. If they allow none, why not and for how long.
--
-- Called by: dispatch_room. Index: job_limited_idx, limiter_grant_idx.
-- The planner settings of dispatch_room hold here too.
-- patience:  seconds that a ready job may wait before its queue is stalled: 15, or longer where a
--            call takes long to come round.
-- free_at:   since when some credential lets calls through. probing: and only for a probe.
CREATE OR REPLACE FUNCTION livewell.credential_room(
    p_limiter livewell.limiter, p_now timestamptz, p_page integer)
RETURNS TABLE (
    calls integer, background_calls integer, units bigint, background_units bigint,
    wait_seconds float8, reason text, patience float8, free_at timestamptz, probing boolean)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    c_ahead     CONSTANT pg_catalog.float8 := 2;    -- seconds
    v_name      pg_catalog.text := p_limiter."name";
    v_shared    pg_catalog.text[] := ARRAY(         -- all queues of the limiter
        SELECT q.name FROM livewell.queue q WHERE q.limiter = v_name);
    v_reserved  pg_catalog.jsonb;
    v_c         record;
    v_ahead     integer;
BEGIN
    calls := 0;
    background_calls := 0;
    patience := 15;
    free_at := 'infinity';
    probing := true;
    SELECT coalesce(jsonb_object_agg(r.credential, r.units), '{}') INTO v_reserved FROM (
        SELECT j.credential, sum(j.reserved_units) AS units FROM livewell.job j
        WHERE j.queue = ANY (v_shared) AND j.credential IS NOT NULL GROUP BY j.credential) r;
    FOR v_c IN
        SELECT r.*, least(p_limiter.rate_calls, c.learnt_calls) AS rate,
               greatest(c.free_at, c.open_until, c.quiet_until) AS free_at
        FROM livewell.limiter_room(p_limiter, p_now, v_reserved, 1, ARRAY(
            SELECT c.name FROM livewell.limiter_credential c
            WHERE c.limiter = v_name AND c.probe_fence IS NOT NULL AND EXISTS (
                SELECT FROM livewell.job j
                WHERE j.queue = ANY (v_shared) AND j.credential IS NOT NULL
                  AND j.fence = c.probe_fence))) AS r
        JOIN livewell.limiter_credential c ON c.limiter = v_name AND c.name = r.credential
    LOOP
        IF v_c.calls > 0 OR v_c.reason = 'rate' THEN
            patience := greatest(patience, 3 * p_limiter.rate_seconds / v_c.rate);
            free_at := least(free_at, coalesce(v_c.free_at, '-infinity'));
            probing := probing AND v_c.probe;
        END IF;
        units := units + v_c.units;
        background_units := background_units + v_c.background_units;
        IF units IS NULL THEN
            units := v_c.units;
            background_units := v_c.background_units;
        END IF;
        IF v_c.reason IN ('breaker', 'upstream', 'probe', 'restart') OR v_c.units <= 0 THEN
            IF wait_seconds IS NULL OR v_c.wait_seconds < wait_seconds THEN
                wait_seconds := v_c.wait_seconds;
                reason := v_c.reason;
            END IF;
        ELSIF v_c.probe THEN
            calls := calls + 1;
            background_calls := background_calls + 1;
        ELSIF v_c.rate IS NULL THEN
            calls := calls + p_page;
            background_calls := background_calls + p_page;
        ELSE
            v_ahead := ceil(
                greatest(
                    c_ahead - CASE WHEN v_c.calls = 0 THEN coalesce(v_c.wait_seconds, 0) ELSE 0 END,
                    0)
                * v_c.rate / p_limiter.rate_seconds);
            calls := calls + v_c.calls + v_ahead;
            background_calls := background_calls + v_c.background_calls
                + CASE WHEN v_c.background_calls > 0 THEN v_ahead
                       ELSE ceil(greatest(c_ahead - coalesce(v_c.wait_seconds, 0), 0)
                                 * v_c.rate / p_limiter.rate_seconds) END;
            IF v_c.calls + v_ahead = 0
               AND (wait_seconds IS NULL OR v_c.wait_seconds < wait_seconds) THEN
                wait_seconds := v_c.wait_seconds;
                reason := 'rate';
            END IF;
        END IF;
    END LOOP;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.credential_room IS
    'What the credentials of a limiter allow in the next two seconds; if nothing, why and for how '
    'long.';
REVOKE ALL ON FUNCTION livewell.credential_room FROM PUBLIC;

-- ── refresh/functions/due/demand_refresh.sql ──
-- A reader wants this key refreshed: make its job, in the lane of people who wait, unless the key
-- turns out to be fresh enough, absent or backed off.
--
-- Called by: read_through. Answer: as its demand: queued, waiting, due; or none, missing,
--            backed_off.
-- The job is enqueued right here instead of by dispatch, one hop less. While c_waiting_max wait in
-- the queue that would gain nothing, so the key becomes due and dispatch puts it in order.
-- Lock, then look again, in statements of their own. The job's key is inserted without waiting (see
-- enqueue_jobs), and one key has one job, so limits and order hold as they do for dispatch.
-- Index: ledger_pkey, job_ready_idx, job_unique_key_idx.
CREATE OR REPLACE FUNCTION livewell.demand_refresh(
    p_type livewell.data_type, p_key text, p_max_age float8)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    c_waiting_max CONSTANT integer := 200;
    v_now       pg_catalog.timestamptz;
    v_l         livewell.ledger;
    v_name      pg_catalog.text := p_type."name";
    v_queue     pg_catalog.text := livewell.refresh_queue(p_type.upstream, p_type.pool);
    v_demand    pg_catalog.text;
    v_answer    pg_catalog.text;
BEGIN
    SELECT l.* INTO v_l FROM livewell.ledger l
    WHERE l.data_type = p_type.name AND l.key = p_key FOR NO KEY UPDATE;
    v_now := livewell.now();
    IF NOT FOUND THEN
        INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at)
        VALUES (v_name, p_key, p_type.upstream, v_now, v_now) ON CONFLICT DO NOTHING;
        SELECT l.* INTO v_l FROM livewell.ledger l
        WHERE l.data_type = p_type.name AND l.key = p_key FOR NO KEY UPDATE;
    END IF;
    v_demand := livewell.refresh_wanted(p_type, v_l, p_max_age, v_now);
    IF v_demand <> 'wanted' THEN
        RETURN v_demand;
    END IF;
    v_demand := 'due';
    IF (SELECT count(*) FROM (
            SELECT FROM livewell.job j WHERE j.queue = v_queue AND j.state = 'ready' AND j.lost = 0
            LIMIT c_waiting_max) w) < c_waiting_max THEN
        SELECT coalesce(min(e.answer), 'inserted') INTO v_answer FROM livewell.enqueue_jobs((
            SELECT jsonb_agg(to_jsonb(j))
            FROM livewell.refresh_jobs(ARRAY[v_name], ARRAY[p_key], ARRAY[0]) AS j)) AS e;
        v_demand := CASE v_answer
            WHEN 'inserted' THEN 'queued' WHEN 'vanished' THEN 'due' ELSE 'waiting' END;
    END IF;
    -- As dispatch does: out of sight for two minutes, in which the job decides; a key that dispatch
    -- is to come to is due now.
    UPDATE livewell.ledger l
    SET demanded_at = v_now, wanted_at = v_now,
        due_at = CASE v_demand WHEN 'due' THEN v_now ELSE v_now + interval '2 minutes' END,
        demand_class = CASE l.demand_class WHEN 0 THEN 1 ELSE l.demand_class END
    WHERE l.data_type = p_type.name AND l.key = p_key;
    RETURN v_demand;
END
$$;
COMMENT ON FUNCTION livewell.demand_refresh IS
    'Queues the refresh of a key for somebody who waits, or says why not.';
REVOKE ALL ON FUNCTION livewell.demand_refresh FROM PUBLIC;

-- ── refresh/functions/due/dispatch_due.sql ──
-- The due check of one upstream: what is stale and watched becomes jobs, as far as its limits allow
-- for the next two seconds; what nobody watches is parked.
--
-- Called by: refresh/due/check.py, by the holder of the singleton refresh.due: when nudged, when
--            something becomes due, and every second.
-- Steps:     dispatch_room (how much may go), due_candidates (a page of what is due),
--            choose_refreshes (which of it goes, and in which order), queue_chosen (lock, look
--            again, make jobs), park_unwatched.
-- Cost:      100,000 sessions, 300,000 subscriptions, 50,000 keys, one of them with 100,000
--            viewers, 500 due: 26 ms under a rate of 300 a minute, of which counting viewers is 16;
--            68 ms when all 500 become jobs. The same with ten times the keys (measured on two busy
--            cores: a sum over a million rows took 137 ms there).
-- Index:     ledger_class_idx, ledger_due_idx, ledger_pkey, subscription_key_idx,
--            viewer_session_pkey, job_unique_key_idx, dead_job_refresh_idx.
-- Answer:    dispatched; blocked (reason, wait_seconds); paused; unknown; not_holder, if the term
--            is not ours any more: nothing was done. wait_seconds: when it is worth looking again.
-- Contracts: 8, the lane is decided in order_refreshes: a scheduled type or a prefetched key is
--            never lane 0. 12, every page is bounded. 4, a type that cannot be served (paused,
--            parked, no queue, no worker for its pool, broken rule) is set aside and changes
--            nothing for the others.
CREATE OR REPLACE FUNCTION livewell.dispatch_due(
    p_name text, p_fence bigint, p_upstream text, p_page integer DEFAULT 1000,
    p_oldest integer DEFAULT 1500, p_newest integer DEFAULT 250)
RETURNS TABLE (
    answer text, inserted integer, merged integer, parked integer, failed integer, due integer,
    wait_seconds float8, reason text, queues text[])
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
    v_now       timestamptz;
    v_upstream  livewell.upstream;
    v_room      record;
    -- Of the page: twice what can go, as some of it turns out to be fresh, failing or watched by
    -- nobody.
    v_size      integer;
    v_page      record;         -- the candidates, as arrays
    v_chosen    record;         -- of those: what goes, as arrays
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'refreshes are dispatched on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    answer := 'not_holder';
    inserted := 0;
    merged := 0;
    parked := 0;
    failed := 0;
    due := 0;
    queues := '{}';
    IF NOT livewell.hold_singleton(p_name, p_fence) THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO v_upstream FROM livewell.upstream u WHERE u.name = p_upstream;
    IF NOT FOUND OR v_upstream.paused_at IS NOT NULL THEN
        answer := CASE WHEN v_upstream.name IS NULL THEN 'unknown' ELSE 'paused' END;
        wait_seconds := 60;
        RETURN NEXT;
        RETURN;
    END IF;
    v_now := livewell.now();
    SELECT * INTO v_room FROM livewell.dispatch_room(p_upstream, v_now, p_page);
    reason := v_room.reason;
    wait_seconds := v_room.wait_seconds;
    IF v_room.calls <= 0 THEN
        answer := 'blocked';
        RETURN NEXT;
        RETURN;
    END IF;

    answer := 'dispatched';
    v_size := least(p_oldest, greatest(p_newest, 2 * v_room.calls * (
        SELECT max(t.keys_max) FROM livewell.data_type t WHERE t.upstream = p_upstream)));
    SELECT array_agg(c.data_type) AS types, array_agg(c.key) AS keys, array_agg(c.due_at) AS dues,
           array_agg(c.viewers) AS viewers, array_agg(c.wanted_at) AS wanted
    INTO v_page
    FROM livewell.due_candidates(p_upstream, v_now, v_size, p_newest, v_room.calls) AS c;
    due := coalesce(cardinality(v_page.keys), 0);
    SELECT * INTO v_chosen FROM livewell.choose_refreshes(
        p_upstream, v_page.types, v_page.keys, v_page.dues, v_page.viewers, v_page.wanted,
        v_room.calls,
        v_room.background_calls, v_room.units, v_room.background_units, v_room.stalled, v_now);
    SELECT q.inserted, q.merged, q.failed, q.queues INTO inserted, merged, failed, queues
    FROM livewell.queue_chosen(
        v_chosen.types, v_chosen.keys, v_chosen.lanes, v_chosen.calls, v_now) AS q;
    -- Last, as a subscriber of such a key waits for this lock until we commit.
    parked := livewell.park_unwatched(
        v_page.types, v_page.keys, v_page.viewers, v_page.wanted, v_now);

    -- When to look again.
    reason := coalesce(v_chosen.reason, reason);
    IF v_chosen.left_over > 0 THEN
        reason := coalesce(reason, 'rate');
        wait_seconds := coalesce(wait_seconds, 1);
    ELSIF due >= least(v_size, p_newest) THEN
        wait_seconds := 0.02;
    ELSE
        SELECT extract(epoch FROM l.due_at - v_now) INTO wait_seconds FROM livewell.ledger l
        WHERE l.upstream = p_upstream AND l.due_at > v_now ORDER BY l.due_at LIMIT 1;
        wait_seconds := least(wait_seconds, 60);
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.dispatch_due IS
    'Queues what is stale and watched, by viewers and waiting, within the limits of one upstream; '
    'parks what nobody watches.';
REVOKE ALL ON FUNCTION livewell.dispatch_due FROM PUBLIC;

-- ── refresh/functions/due/dispatch_room.sql ──
-- How many calls of an upstream may be put into its queues now, for each lane: permits for about
-- two seconds, less what waits already. If none, why not and for how long.
--
-- Called by: dispatch_due, dispatch_scheduled, read_throttle, why_refresh. Reads the limiter
--            without its lock: an estimate is enough here, the claim decides.
-- Index:     job_unique_key_idx, job_limited_idx, limiter_grant_idx.
-- Just in time: whatever is queued has lost its place in the order by viewers, so no
-- more is queued than the next two seconds can use (credential_room). Without a rate: twenty calls
-- for each that may run at once, and p_page at most.
-- Background work that waits takes nothing from lane 0, which goes before it anyway. A queue whose
-- viewers' jobs could have run for 15 seconds and did not is stalled: no worker serves its pool, or
-- it is paused. It gets no more, and what lies there does not count, or one pool without workers
-- would stop the whole upstream. Jobs that wait for the limiter make no queue stalled: while it
-- lets nothing through none is, and the time that an open breaker or a silence took does not count.
-- Producers stop before the budget does: what waits counts as used (R11). Paused by the breaker or
-- by the upstream itself: nothing. Half open: one, for the probe, beside whatever waits for keys
-- that are failing: those do not probe while there is another (R13).
CREATE OR REPLACE FUNCTION livewell.dispatch_room(
    p_upstream text, p_now timestamptz, p_page integer)
RETURNS TABLE (
    calls integer, background_calls integer, units bigint, background_units bigint, waiting integer,
    background_waiting integer, wait_seconds float8, reason text, stalled text[])
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_variable
DECLARE
    v_limiter   livewell.limiter;
    v_queues    pg_catalog.text[] := livewell.list_refresh_queues(p_upstream);
    v_units     bigint[];               -- of what waits: in lane 0, in both
    -- Seconds that a ready job may wait before its queue is stalled.
    v_patience  pg_catalog.float8;
    v_free_at   pg_catalog.timestamptz; -- since when some credential lets calls through
    v_probing   boolean;                -- and only for a probe
BEGIN
    SELECT * INTO v_limiter FROM livewell.limiter l WHERE l.name = p_upstream;
    IF FOUND THEN
        SELECT c.calls, c.background_calls, c.units, c.background_units, c.wait_seconds, c.reason,
               c.patience, c.free_at, c.probing
        INTO calls, background_calls, units, background_units, wait_seconds, reason,
             v_patience, v_free_at, v_probing
        FROM livewell.credential_room(v_limiter, p_now, p_page) AS c;
        IF v_limiter.concurrency IS NOT NULL AND v_limiter.rate_calls IS NULL THEN
            calls := least(calls, 20 * v_limiter.concurrency);
        END IF;
    ELSE
        calls := p_page;
        background_calls := p_page;
        v_patience := 15;
        v_free_at := '-infinity';
        v_probing := false;
    END IF;
    stalled := ARRAY(
        SELECT q FROM unnest(v_queues) AS q
        CROSS JOIN LATERAL (
            SELECT j.rank FROM livewell.job j
            WHERE j.queue = q AND j.state = 'ready' AND j.lost = 0 AND j.lane = 0
            ORDER BY j.rank LIMIT 1) o
        WHERE o.rank < (extract(epoch FROM p_now) - v_patience) * 1000
          AND v_free_at < p_now - v_patience * interval '1 second');
    SELECT count(DISTINCT coalesce(w.call_key, w.id::pg_catalog.text)) FILTER (WHERE w.lane = 0),
           count(DISTINCT coalesce(w.call_key, w.id::pg_catalog.text)) FILTER (WHERE w.lane = 1),
           ARRAY[coalesce(sum(w.units) FILTER (WHERE w.lane = 0), 0), coalesce(sum(w.units), 0)]
    INTO waiting, background_waiting, v_units FROM (
        SELECT j.id, j.call_key, j.units, j.lane FROM livewell.job j
        WHERE j.queue = ANY (v_queues) AND j.queue <> ALL (stalled) AND j.unique_key IS NOT NULL
          AND j.held_by IS DISTINCT FROM 'k' AND j.state IN ('ready', 'held')
          AND NOT (v_probing AND EXISTS (
              SELECT FROM livewell.limiter_failing f
              WHERE f.limiter = p_upstream AND f.key = coalesce(j.group_key, j.unique_key)
                AND f.failures > 0))
        LIMIT 5000) w;
    calls := least(calls, p_page);
    background_calls := least(background_calls, calls);
    IF calls > 0 AND calls <= waiting THEN
        reason := 'waiting';
        wait_seconds := CASE WHEN v_limiter.rate_calls IS NULL THEN 0.02 ELSE 0.5 END;
    END IF;
    calls := greatest(calls - waiting, 0);
    background_calls := greatest(background_calls - waiting - background_waiting, 0);
    IF v_limiter.budget_unit = 'calls' THEN
        v_units := ARRAY[waiting, waiting + background_waiting];
    END IF;
    units := units - v_units[1];
    background_units := background_units - v_units[2];
    IF units <= 0 THEN
        calls := 0;
        reason := 'budget';
        wait_seconds := coalesce(wait_seconds, 5);
    END IF;
    IF background_units <= 0 THEN
        background_calls := 0;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.dispatch_room IS
    'How many calls of an upstream may be queued now, per lane; if none, why and for how long.';
REVOKE ALL ON FUNCTION livewell.dispatch_room FROM PUBLIC;

-- ── refresh/functions/due/dispatch_scheduled.sql ──
-- One page of the walk of a scheduled type through its universe: the next keys become jobs of lane 1,
-- and the cursor moves on (R19).
--
-- Called by: refresh/due/walk.py, by the holder of the singleton, once a second while the walk is open.
-- Which:     the run of walk.<type> that is under way; a scheduler has begun it when its slot came.
-- p_next:    NULL. A worker of 0.6.0 gives the slot after this walk: then a walk that is due is begun.
-- Index:     run_running_idx, universe_pkey, ledger_pkey, job_unique_key_idx.
-- Answer:    not_due; walking (look again after wait_seconds: so many may wait and no more); walked; blocked; not_holder; unknown.
-- Never types × keys (contract 9): at most p_most jobs of lane 1 wait in the type's queue, whatever the universe holds. Jobs are counted, not calls (a call of a batch type has up to 1,000), and also those
-- that wait for their next attempt. Of its own queue alone: a pool that nobody serves must not stop the walks of the others. The cursor is a column: a restart goes on where it was.
-- Always lane 1 (contract 8), and within what the rate and the budget leave for the background.
-- A key that is backed off, or was checked after the walk was due, is passed over.
-- Where somebody has paused the schedule the walk is blocked, unless it was asked for.
CREATE OR REPLACE FUNCTION livewell.dispatch_scheduled(p_name text, p_fence bigint, p_type text, p_next timestamptz, p_most integer DEFAULT 1000)
RETURNS TABLE (answer text, inserted integer, merged integer, wait_seconds float8, queues text[])
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_variable
DECLARE
    v_now       timestamptz;
    v_type      livewell.data_type;
    v_run       livewell.run;
    v_room      record;
    v_limit     bigint;
    v_queue     text;
    v_keys      text[];
    v_wanted    text[];
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'refreshes are dispatched on the primary only; this server is a replica' USING ERRCODE = 'LW001';
    END IF;
    inserted := 0;
    merged := 0;
    queues := '{}';
    answer := 'not_holder';
    IF NOT livewell.hold_singleton(p_name, p_fence) THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO v_type FROM livewell.data_type t WHERE t.name = p_type AND t.strategy = 'scheduled';
    IF p_next IS NOT NULL AND v_type.name IS NOT NULL THEN
        PERFORM livewell.begin_walk(p_type, p_next);
    END IF;
    SELECT * INTO v_run FROM livewell.run r
    WHERE r.schedule = 'walk.' || p_type AND r.state = 'running';
    v_now := livewell.now();
    answer := CASE WHEN v_type.name IS NULL THEN 'unknown' WHEN v_run.id IS NULL THEN 'not_due' END;
    IF answer IS NULL AND (livewell.walk_held(v_type) OR NOT v_run.asked AND EXISTS (
        SELECT FROM livewell.schedule s WHERE s.name = v_run.schedule AND s.paused_at IS NOT NULL)) THEN
        answer := 'blocked';
        wait_seconds := 60;
    END IF;
    IF answer IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO v_room FROM livewell.dispatch_room(v_type.upstream, v_now, p_most);
    -- What may wait is bounded; how fast it goes is the claim's to decide.
    v_queue := livewell.refresh_queue(v_type.upstream, v_type.pool);
    v_limit := least(p_most, 1000) - (
        SELECT count(*) FROM livewell.job j WHERE j.queue = v_queue AND j.unique_key IS NOT NULL AND j.held_by IS DISTINCT FROM 'k' AND j.state <> 'running' AND j.lane = 1);
    IF v_room.background_units IS NOT NULL THEN
        v_limit := least(v_limit, CASE WHEN (SELECT l.budget_unit FROM livewell.limiter l WHERE l.name = v_type.upstream) = 'calls' THEN v_room.background_units * v_type.keys_max
                                       ELSE v_room.background_units / livewell.expected_size(v_type.upstream, p_type, v_type.size_estimate) END);
    END IF;
    IF v_limit <= 0 OR v_room.calls = 0 AND v_room.reason IN ('breaker', 'upstream', 'probe', 'budget') THEN
        answer := 'blocked';
        wait_seconds := greatest(coalesce(v_room.wait_seconds, 1), 1);
        RETURN NEXT;
        RETURN;
    END IF;
    v_keys := ARRAY(
        SELECT u.key FROM livewell.universe u
        WHERE u.data_type = p_type AND u.active
          -- without rows it has had no page yet, and the cursor is that of a walk before it
          AND u.key > CASE WHEN v_run.rows_affected IS NULL THEN '' ELSE coalesce(v_type.cron_cursor, '') END
        ORDER BY u.key LIMIT v_limit);
    IF cardinality(v_keys) > 0 THEN
        INSERT INTO livewell.ledger (data_type, key, upstream, status_at) SELECT p_type, k, v_type.upstream, v_now FROM unnest(v_keys) AS k ORDER BY k ON CONFLICT (data_type, key) DO NOTHING;
        PERFORM FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = ANY (v_keys) ORDER BY l.key FOR NO KEY UPDATE;
        PERFORM livewell.fail_dead(array_agg(p_type), array_agg(k), v_now) FROM unnest(v_keys) AS k;
        v_wanted := ARRAY(
            SELECT l.key FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = ANY (v_keys)
              AND coalesce(l.retry_at <= v_now, true) AND coalesce(l.checked_at < v_run.due_at, true) ORDER BY l.key);
        SELECT e.inserted, e.merged, e.queues INTO inserted, merged, queues
        FROM (SELECT array_agg(p_type) AS types, array_agg(k) AS keys, array_agg(1) AS lanes, array_agg(((n - 1) / v_type.keys_max)::integer) AS calls FROM unnest(v_wanted) WITH ORDINALITY AS w (k, n)) g,
             livewell.enqueue_refreshes(g.types, g.keys, g.lanes, g.calls) AS e;
    END IF;
    IF cardinality(v_keys) < v_limit THEN
        answer := 'walked';
        UPDATE livewell.data_type t SET cron_cursor = NULL WHERE t.name = p_type;
    ELSE
        answer := 'walking';
        wait_seconds := 1;
        UPDATE livewell.data_type t SET cron_cursor = v_keys[cardinality(v_keys)] WHERE t.name = p_type;
    END IF;
    PERFORM livewell.count_open_run(v_run.id, h.holder, inserted, answer = 'walked')
    FROM livewell.singleton h WHERE h.name = p_name;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.dispatch_scheduled IS 'Queues the next page of a scheduled type''s walk, on the background lane, and moves its cursor.';
REVOKE ALL ON FUNCTION livewell.dispatch_scheduled FROM PUBLIC;

-- ── refresh/functions/due/drop_refreshes.sql ──
-- End waiting refreshes that nobody wants any more, before they are called or chosen as a probe: a
-- job is made because somebody looks, and that one may have gone while it waited for a breaker, a
-- limit or its next attempt (H1).
--
-- Called by: refresh/due/check.py, by the holder of the singleton refresh.due, every 5 seconds for
--            each upstream. Answers how many were ended.
-- Wanted is:  whoever looks now (a session seen within five minutes), whatever a reader demanded
--             within seven (the longest wait is five, and for two minutes a demand that is on its
--             way is not written again), a scheduled type (its walk has passed the key already),
--             the background lane, and for five minutes what an operator put back by hand (tried
--             before, and now not yet).
-- Not on the way of a claim: jobs that were made within ten seconds are left alone, and as a rule
-- none is older. Measured on two busy cores: nothing waits 0.3 ms, 1,000 watched jobs wait 14 ms,
-- 1,000 are ended 200 to 300 ms.
-- The permit is not touched, the attempt does not count, and the upstream is not blamed. The key is
-- due now, so that the next due check parks it, or queues it for who came meanwhile.
-- Index:      job_unique_key_idx, ledger_pkey, subscription_key_idx, viewer_session_pkey.
-- Locks: ledger, then job, both SKIP LOCKED: a store locks them the other way round, and a demand
-- waits for us with its ledger row; who never waits is in no deadlock. Lock, then look again.
CREATE OR REPLACE FUNCTION livewell.drop_refreshes(p_upstream text, p_limit integer DEFAULT 1000)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    c_looked    CONSTANT integer := 5000;
    v_now       timestamptz := livewell.now();
    v_seen      timestamptz := v_now - interval '5 minutes';
    v_demanded  timestamptz := v_now - interval '7 minutes';
    v_queues    text[] := livewell.list_refresh_queues(p_upstream);
    v_old       bigint[];               -- jobs that wait for longer than a moment
    v_types     text[];
    v_keys      text[];
    v_ids       bigint[];
BEGIN
    v_old := ARRAY(
        SELECT j.id FROM livewell.job j
        WHERE j.queue = ANY (v_queues) AND j.unique_key IS NOT NULL
          AND j.held_by IS DISTINCT FROM 'k' AND j.state <> 'running' AND j.lane = 0
          AND j.kind = 'livewell.refresh'
          AND j.created_at < v_now - interval '10 seconds'
          AND (j.attempt > 0 OR j.last_error IS NULL OR j.run_at < v_seen)
        LIMIT c_looked);
    IF cardinality(v_old) = 0 THEN
        RETURN 0;
    END IF;
    SELECT array_agg(x.id), array_agg(x.data_type), array_agg(x.key)
    INTO v_ids, v_types, v_keys FROM (
        SELECT j.id, l.data_type, l.key
        FROM unnest(v_old) AS o (id) JOIN livewell.job j ON j.id = o.id
        JOIN livewell.data_type t ON t.name = split_part(j.unique_key, ':', 1)
            AND t.strategy <> 'scheduled'
        JOIN livewell.ledger l ON l.data_type = t.name AND l.key = j.group_key
        WHERE coalesce(l.demanded_at < v_demanded, true)
          AND NOT EXISTS (
              SELECT FROM livewell.subscription b
              JOIN livewell.viewer_session v ON v.id = b.session_id
              WHERE b.data_type = l.data_type AND b.key = l.key AND v.seen_at > v_seen)
        LIMIT p_limit FOR NO KEY UPDATE OF l SKIP LOCKED) x;
    SELECT array_agg(x.id), array_agg(x.name), array_agg(x.key) INTO v_ids, v_types, v_keys FROM (
        SELECT j.id, g.name, g.key
        FROM unnest(v_ids, v_types, v_keys) AS g (id, name, key)
        JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
        JOIN livewell.job j ON j.id = g.id
        WHERE j.state <> 'running' AND j.lane = 0 AND coalesce(l.demanded_at < v_demanded, true)
          AND NOT EXISTS (
              SELECT FROM livewell.subscription b
              JOIN livewell.viewer_session v ON v.id = b.session_id
              WHERE b.data_type = g.name AND b.key = g.key AND v.seen_at > v_seen)
        FOR UPDATE OF j SKIP LOCKED) x;
    IF v_ids IS NULL THEN
        RETURN 0;
    END IF;
    UPDATE livewell.ledger l SET due_at = greatest(v_now, l.retry_at)
    FROM unnest(v_types, v_keys) AS g (name, key)
    WHERE l.data_type = g.name AND l.key = g.key AND l.due_at IS NOT NULL;
    PERFORM livewell.settle_jobs(
        v_ids, array_agg('cancelled'::text), array_agg(NULL::text),
        array_agg('nobody wants it any more'::text), array_agg(NULL::float8))
    FROM unnest(v_ids) AS d;
    RETURN cardinality(v_ids);
END
$$;
COMMENT ON FUNCTION livewell.drop_refreshes IS
    'Ends refreshes that wait though nobody wants them any more; answers how many.';
REVOKE ALL ON FUNCTION livewell.drop_refreshes FROM PUBLIC;

-- ── refresh/functions/due/due_candidates.sql ──
-- A bounded page of what is due for an upstream, with its viewers now: what has the highest score,
-- of everything that is due (X2).
--
-- Called by: dispatch_due. What is chosen from it is locked and looked at again; only classes that
--            turned out to be wrong are written.
-- Index:     ledger_class_idx, subscription_key_idx, viewer_session_pkey. Cost grows with the page,
--            not with what is due nor with what exists (R7, contract 12).
-- How:       the ledger has the class of each key, the power of two below its viewers when it was
--            last counted. Within a class the oldest have the highest score, so the first of each
--            class, merged by least viewers of the class · (seconds waited + 10), are the first of
--            all. These alone are counted, and their true viewers decide the order. The least of a
--            class is more than half of its true viewers: whatever is in the page has more than
--            half the score of whatever is not.
-- Why rows are compared: with demand_class = class AND due_at <= now both ledger_class_idx and
--            ledger_due_idx serve, and where statistics know one class only (after the migration;
--            while all keys have one viewer) the smaller one is taken: each class then reads all
--            that is due, 940,000 pages and up to 6 s for 50,000 keys. A pair can be had from one
--            index alone, whatever statistics say.
-- p_oldest:  keys that people look at, at most. p_newest: keys of the background (classes 0 and
--            below), at most; they never take a place from the others.
-- p_room:    calls that may be queued now. Where everything that is due can go at once, its order
--            is worth less, and a thousand subscriptions are looked at in all: 7 ms instead of 17
--            for 500 keys. Otherwise c_looked: a page of keys with hundreds of viewers each costs
--            no more than one of keys with few, see viewers_of.
-- Who waits for a read-through (demanded_at, for a minute) counts as one viewer more.
CREATE OR REPLACE FUNCTION livewell.due_candidates(
    p_upstream text, p_now timestamptz, p_oldest integer, p_newest integer, p_room integer)
RETURNS TABLE (data_type text, key text, due_at timestamptz, viewers integer, wanted_at timestamptz)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    c_looked    CONSTANT integer := 60000;
    v_page      record;                 -- as arrays
    v_n         integer;
    v_viewers   integer[];
BEGIN
    SELECT array_agg(o.data_type) AS types, array_agg(o.key) AS keys, array_agg(o.due_at) AS dues,
           array_agg(o.demanded) AS demanded, array_agg(o.wanted_at) AS wanted,
           array_agg(o.class) AS classes
    INTO v_page FROM (
        (SELECT f.* FROM generate_series(1, 10) AS c (class) CROSS JOIN LATERAL (
            SELECT l.data_type, l.key, l.due_at, l.wanted_at, c.class,
                   (
                       coalesce(l.demanded_at > p_now - interval '1 minute', false)
                           AND coalesce(l.checked_at < l.demanded_at, true))::integer AS demanded
            FROM livewell.ledger l
            WHERE l.upstream = p_upstream AND l.due_at IS NOT NULL
              AND (l.demand_class, l.due_at) >= (c.class, '-infinity')
              AND (l.demand_class, l.due_at) <= (c.class, p_now)
            ORDER BY l.demand_class, l.due_at LIMIT p_oldest) f
         ORDER BY 2 ^ (f.class - 1) * (extract(epoch FROM p_now - f.due_at) + 10) DESC
         LIMIT p_oldest)
        UNION ALL
        (SELECT f.* FROM generate_series(-10, 0) AS c (class) CROSS JOIN LATERAL (
            SELECT l.data_type, l.key, l.due_at, l.wanted_at, c.class,
                   (
                       coalesce(l.demanded_at > p_now - interval '1 minute', false)
                           AND coalesce(l.checked_at < l.demanded_at, true))::integer AS demanded
            FROM livewell.ledger l
            WHERE l.upstream = p_upstream AND l.due_at IS NOT NULL
              AND (l.demand_class, l.due_at) >= (c.class, '-infinity')
              AND (l.demand_class, l.due_at) <= (c.class, p_now)
            ORDER BY l.demand_class, l.due_at LIMIT p_newest) f
         ORDER BY 2 ^ (-f.class - 1) * (extract(epoch FROM p_now - f.due_at) + 10) DESC
         LIMIT p_newest)) o;
    v_n := cardinality(v_page.keys);
    IF v_n IS NULL THEN
        RETURN;
    END IF;
    v_viewers := livewell.viewers_of(
        v_page.types, v_page.keys, v_page.classes,
        least(greatest(CASE WHEN v_n <= p_room THEN 1000 ELSE c_looked END / v_n, 1), 1000), p_now);
    v_viewers := ARRAY(
        SELECT n + d FROM unnest(v_viewers, v_page.demanded) WITH ORDINALITY AS u (n, d, place)
        ORDER BY u.place);
    PERFORM livewell.classify_keys(v_page.types, v_page.keys, v_page.classes, v_viewers);
    RETURN QUERY SELECT *
    FROM unnest(v_page.types, v_page.keys, v_page.dues, v_viewers, v_page.wanted);
END
$$;
COMMENT ON FUNCTION livewell.due_candidates IS
    'A bounded page of what is due, by viewers and waiting, with the viewers of each.';
REVOKE ALL ON FUNCTION livewell.due_candidates FROM PUBLIC;

-- ── refresh/functions/due/due_check_name.sql ──
-- The name of the due check: of its singleton, of the channel that it is nudged by, and of its line
-- in the statistics.
--
-- Called by: rule_singleton_held, state_refresh; every function that names it. DUE of
--            refresh/nudges.py says the same to Python, and a test compares the two.
CREATE OR REPLACE FUNCTION livewell.due_check_name()
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT 'refresh.due'
$$;
COMMENT ON FUNCTION livewell.due_check_name IS 'The name of the singleton of the due check.';
REVOKE ALL ON FUNCTION livewell.due_check_name FROM PUBLIC;

-- ── refresh/functions/due/enqueue_refreshes.sql ──
-- Queue refreshes of these keys, in the order given, each with its lane and its call
-- (refresh_jobs).
--
-- Called by: dispatch_due (queue_chosen), dispatch_scheduled.
-- Answer:    how many were inserted, how many merged into a job that was there; and the queues that
--            have something new.
-- Keys that are free go by arrays; only those that have a job take the long way, to raise it.
CREATE OR REPLACE FUNCTION livewell.enqueue_refreshes(
    p_types text[], p_keys text[], p_lanes integer[], p_calls integer[])
RETURNS TABLE (inserted integer, merged integer, queues text[])
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_n         integer := cardinality(p_keys);
    v_new       record;                 -- the jobs, as arrays
    v_taken     bigint[];               -- whose key has a job already
BEGIN
    inserted := 0;
    merged := 0;
    queues := '{}';
    IF v_n > 0 THEN
        SELECT array_agg(j.id) AS ids, array_agg(j.queue) AS queues, array_agg(j.lane) AS lanes,
               array_agg(j.unique_key) AS keys, array_agg(j.group_key) AS groups,
               array_agg(j.call_key) AS calls, array_agg(j.units) AS units,
               array_agg(j.payload) AS payloads,
               min(j.kind) AS kind, min(j.policy) AS policy, min(j.max_attempts) AS attempts
        INTO v_new FROM livewell.refresh_jobs(p_types, p_keys, p_lanes, p_calls) AS j;
        v_taken := livewell.enqueue_keyed(
            v_new.kind, v_new.attempts, v_new.ids, v_new.queues, v_new.lanes, v_new.keys,
            v_new.groups, v_new.calls, v_new.units, v_new.payloads);
        queues := ARRAY(SELECT DISTINCT q FROM unnest(v_new.queues) AS q ORDER BY q);
        IF cardinality(v_taken) > 0 THEN
            SELECT count(*) FILTER (WHERE a.answer IN ('merged', 'vanished', 'held', 'dropped'))
            INTO merged FROM livewell.enqueue_jobs((
                SELECT jsonb_agg(to_jsonb(j)) FROM (
                    SELECT n.*, v_new.kind AS kind, v_new.policy AS policy,
                           v_new.attempts AS max_attempts
                    FROM unnest(
                        v_new.ids, v_new.queues, v_new.lanes, v_new.keys, v_new.groups, v_new.calls,
                        v_new.units, v_new.payloads)
                        AS n (id, queue, lane, unique_key, group_key, call_key, units, payload)
                    WHERE n.id = ANY (v_taken)) j)) AS a;
        END IF;
        inserted := v_n - merged;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.enqueue_refreshes IS
    'Queues refreshes of keys; answers how many are new.';
REVOKE ALL ON FUNCTION livewell.enqueue_refreshes FROM PUBLIC;

-- ── refresh/functions/due/expected_size.sql ──
-- How many bytes a refresh of one key of a type is expected to bring: as measured, until then as
-- the type's file says.
--
-- Called by: whoever reserves or predicts, once for a type: order_refreshes, dispatch_scheduled,
--            refresh_jobs, read_throttle, plan_types, state_refresh. One answer, or what is queued
--            and what is reserved differ (R11, R16).
-- Index:     limiter_estimate_pkey. count_refreshes writes what was measured.
-- Arguments instead of a row of data_type: a row is unpacked with its definition each time.
CREATE OR REPLACE FUNCTION livewell.expected_size(p_upstream text, p_type text, p_stated bigint)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN coalesce(
        (
            SELECT greatest(ceil(e.units), 1)::bigint FROM livewell.limiter_estimate e
            WHERE e.limiter = p_upstream AND e.kind = 'livewell.refresh:' || p_type),
        p_stated);
END
$$;
COMMENT ON FUNCTION livewell.expected_size IS
    'Bytes that a refresh of one key is expected to bring: as measured, until then as the file '
    'says.';
REVOKE ALL ON FUNCTION livewell.expected_size FROM PUBLIC;

-- ── refresh/functions/due/fail_dead.sql ──
-- Turn dead refresh jobs of these keys into failures of the keys: verdict failing, and not asked
-- again for 1 min · 2ⁿ, at most 6 h (R9).
--
-- Called by: queue_chosen and dispatch_scheduled, with the ledger rows locked, before they queue a
--            key again: a poison key cannot loop.
-- Index:     dead_job_refresh_idx, ledger_pkey.
-- Which ones are news: died after the last check and after retry_at. A store that counted the
-- failure itself has set retry_at later than the death, so nothing counts twice; new viewers do not
-- bypass it, and a redrive does, as it takes the letter out of the dead.
CREATE OR REPLACE FUNCTION livewell.fail_dead(p_types text[], p_keys text[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_failed integer;
BEGIN
    -- As a rule none is dead at all: one look instead of one for each key.
    IF NOT EXISTS (SELECT FROM livewell.dead_job j WHERE j.kind = 'livewell.refresh') THEN
        RETURN 0;
    END IF;
    UPDATE livewell.ledger l
    SET failures = l.failures + 1, failing_since = coalesce(l.failing_since, d.died_at),
        retry_at = d.died_at + least(60 * 2 ^ least(l.failures, 20), 21600) * interval '1 second',
        due_at = greatest(
            p_now, d.died_at + least(60 * 2 ^ least(l.failures, 20), 21600) * interval '1 second'),
        reason = coalesce(CASE WHEN l.failing_since IS NOT NULL THEN l.reason END, 'transient'),
        error = left(coalesce(d.error, d.reason), 300), tries = greatest(l.tries, 1),
        tried_at = greatest(l.tried_at, d.died_at),
        status_version = l.status_version + 1, status_at = p_now
    FROM unnest(p_types, p_keys) AS g (name, key)
    CROSS JOIN LATERAL (
        SELECT j.died_at, j.error, j.reason FROM livewell.dead_job j
        WHERE j.kind = 'livewell.refresh' AND j.unique_key = g.name || ':' || g.key
        ORDER BY j.died_at DESC LIMIT 1) d
    WHERE l.data_type = g.name AND l.key = g.key AND d.died_at > coalesce(l.checked_at, '-infinity')
      AND d.died_at >= coalesce(l.retry_at, '-infinity');
    GET DIAGNOSTICS v_failed = ROW_COUNT;
    RETURN v_failed;
END
$$;
COMMENT ON FUNCTION livewell.fail_dead IS
    'Counts dead refresh jobs as failures of their keys and backs the keys off; answers how many '
    'were news.';
REVOKE ALL ON FUNCTION livewell.fail_dead FROM PUBLIC;

-- ── refresh/functions/due/key_trouble.sql ──
-- What went wrong with a key and its upstream, beside what why_key says: answers in a row that
-- brought nothing, and calls that are stopped.
--
-- Called by: `livewell why`, GET /v1/data/{type}/{key}/why, in one statement with why_key, whose
--            columns workers of 0.5.0 know.
-- Index:     ledger_pkey, limiter_credential_pkey, limiter_calls_pkey.
CREATE OR REPLACE FUNCTION livewell.key_trouble(p_type text, p_key text)
RETURNS TABLE (
    tries integer, tried_at timestamptz, older_since timestamptz, older_source_at timestamptz,
    open_until timestamptz, opened integer, calls bigint, calls_failed bigint,
    opened_at timestamptz, cause text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT l.tries, l.tried_at, l.older_since, l.older_source_at, t.open_until, t.opened, t.calls,
           t.calls_failed, t.opened_at, t.cause
    FROM livewell.ledger l
    LEFT JOIN LATERAL (SELECT * FROM livewell.limiter_trouble(l.upstream, v_now) LIMIT 1) t ON true
    WHERE l.data_type = p_type AND l.key = p_key;
END
$$;
COMMENT ON FUNCTION livewell.key_trouble IS
    'Answers in a row that brought nothing for a key, and what stops the calls of its upstream.';
REVOKE ALL ON FUNCTION livewell.key_trouble FROM PUBLIC;

-- ── refresh/functions/due/list_refresh_queues.sql ──
-- All queues that the refreshes of an upstream go through: its own and those of its pools.
--
-- Called by: plan_upstreams; dispatch_room, drop_refreshes, plan_state. There are tens of queues,
--            so all are read.
CREATE OR REPLACE FUNCTION livewell.list_refresh_queues(p_upstream text)
RETURNS text[]
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_own   pg_catalog.text := livewell.refresh_queue(p_upstream);
BEGIN
    RETURN ARRAY(
        SELECT q.name FROM livewell.queue q
        WHERE q.name = v_own OR starts_with(q.name, v_own || '.'));
END
$$;
COMMENT ON FUNCTION livewell.list_refresh_queues IS 'The queues of the refreshes of an upstream.';
REVOKE ALL ON FUNCTION livewell.list_refresh_queues FROM PUBLIC;

-- ── refresh/functions/due/list_walks.sql ──
-- The scheduled types as the due check of 0.6.0 reads them. Goes with 0.8.
--
-- Called by: the due check of workers of 0.6.0, once a second.
-- Index:     schedule_pkey, run_running_idx; data_type is small.
-- due_at:    of an open walk its slot; else when it was asked for, or its next slot. NULL: not planned,
--            and the caller plans it (plan_cron). Without a schedule: soon, so that the caller shows it.
-- shown:     its schedule says what the type says, and says so lately; else the caller calls show_walk.
CREATE OR REPLACE FUNCTION livewell.list_walks()
RETURNS TABLE (
    data_type text, cron text, zone text, due_at timestamptz, paused boolean, shown boolean,
    now timestamptz
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    RETURN QUERY
    SELECT t.name, t.cron, t.zone,
           CASE WHEN s.name IS NULL THEN v_now + interval '1 second'
                ELSE coalesce(r.due_at, s.asked_at, s.due_at) END,
           h.held,
           (s.cron, s.zone, s.held_at IS NOT NULL) IS NOT DISTINCT FROM (t.cron, t.zone, h.held)
               AND s.seen_at BETWEEN v_now - interval '20 seconds' AND v_now,
           v_now
    FROM livewell.data_type t
    CROSS JOIN LATERAL (SELECT livewell.walk_held(t) AS held) h
    LEFT JOIN livewell.schedule s ON s.name = 'walk.' || t.name AND s.open_ended
    LEFT JOIN livewell.run r ON r.schedule = s.name AND r.state = 'running'
    WHERE t.strategy = 'scheduled'
    ORDER BY t.name LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_walks IS 'Scheduled types with their next walk, for workers of 0.6.0.';
REVOKE ALL ON FUNCTION livewell.list_walks FROM PUBLIC;

-- ── refresh/functions/due/may_probe.sql ──
-- Which of these due keys may be the probe of an upstream whose breaker is half open; NULL: it is
-- not, and all of them may go.
--
-- Called by: order_refreshes.
-- Index:     limiter_credential_pkey, limiter_failing_pkey, ledger_pkey.
-- First those that are not failing, had data and are watched: their answer says how the upstream is
-- (R13). Then those that are not failing. Of those that are failing only one, and only from
-- failing_until on: the one that has failed least, and longest ago, so that each has its turn.
CREATE OR REPLACE FUNCTION livewell.may_probe(
    p_upstream text, p_types text[], p_keys text[], p_viewers integer[], p_now timestamptz)
RETURNS boolean[]
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_failing   boolean;        -- a key that is failing may go
BEGIN
    SELECT bool_or(coalesce(c.failing_until <= p_now, true))
    INTO v_failing FROM livewell.limiter_credential c
    WHERE c.limiter = p_upstream AND c.active AND c.breaker <> 'closed';
    IF v_failing IS NULL OR EXISTS (
        SELECT FROM livewell.limiter_credential c
        WHERE c.limiter = p_upstream AND c.active AND c.breaker = 'closed'
          AND coalesce(c.quiet_until <= p_now, true)) THEN
        RETURN NULL;
    END IF;
    RETURN (
        WITH seen AS (
            SELECT g.place, f.failures, f.failed_at,
                   CASE
                       WHEN f.failures > 0 THEN CASE WHEN v_failing THEN 2 END
                       WHEN l.fetched_at IS NULL OR g.viewers = 0 THEN 1
                       ELSE 0
                   END AS class
            FROM unnest(p_types, p_keys, p_viewers) WITH ORDINALITY AS g (name, key, viewers, place)
            LEFT JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
            CROSS JOIN LATERAL (
                SELECT max(x.failures) AS failures, max(x.failed_at) AS failed_at
                FROM livewell.limiter_failing x
                WHERE x.limiter = p_upstream AND x.key = g.key AND x.failures > 0) f
        ), ranked AS (
            SELECT s.place, s.class, min(s.class) OVER () AS best,
                   row_number() OVER (
                       ORDER BY s.class NULLS LAST, s.failures, s.failed_at, s.place) AS turn
            FROM seen s
        )
        SELECT array_agg(
            coalesce(r.class = r.best AND (r.best < 2 OR r.turn = 1), false) ORDER BY r.place)
        FROM ranked r);
END
$$;
COMMENT ON FUNCTION livewell.may_probe IS 'Which due keys may be the probe of a half-open breaker.';
REVOKE ALL ON FUNCTION livewell.may_probe FROM PUBLIC;

-- ── refresh/functions/due/next_due.sql ──
-- When a key is to be looked at again: when its value goes stale, but not before retry_at, and
-- never in the past.
--
-- Called by: set_ttl; move_ledger, unpark, ready_keys and redue_type, for due_at of a key that
--            somebody watches; whether somebody does is theirs to know.
-- Why never in the past: due_at is where waiting is counted from, and a key that nobody watched has
-- not been waiting.
CREATE OR REPLACE FUNCTION livewell.next_due(
    p_type livewell.data_type, p_ledger livewell.ledger, p_now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN greatest(p_now, p_ledger.retry_at, livewell.stale_at(p_type, p_ledger));
END
$$;
COMMENT ON FUNCTION livewell.next_due IS
    'When a key is due: stale by its rule, retry_at passed, not before p_now.';
REVOKE ALL ON FUNCTION livewell.next_due FROM PUBLIC;

-- ── refresh/functions/due/order_refreshes.sql ──
-- The keys of a page of what is due that somebody wants, in the order in which they go: each with
-- its lane, what its type says about calls, and whether it can be served at all.
--
-- Called by: choose_refreshes, with its planner settings.
-- Index:     queue_pkey, data_type_pkey.
-- can:       its type is neither paused nor parked, and has a queue.
-- stalled:   nobody works that queue.
--
-- Order (X2): score = viewers · (seconds waited + 10), lane 0 before lane 1; the highest goes, of
-- everything that is due. Under overload a key with v viewers is refreshed about v times as often
-- as one with one viewer, and nothing waits for ever. due_candidates gives a page of twice what can
-- go; up to that many are due the order is exact, beyond it whatever goes has more than half the
-- score of whatever stays. The bound: with C calls a second, D keys due and V their viewers in all
-- (at most 1,000 counted for a key), a key with v viewers waits no longer than
--     2 · (D + 4 · V / v) / C seconds      (2 · V / v, where the page holds all that is due).
-- Proof: let it wait W. In the second half its score is at least v · W/2, so a key j that goes
-- before it has a score above v · W/4: it has waited at least v·W/(4·v_j) - 10 s since it was last
-- refreshed. If v_j is at most v·W/80 that is at least v·W/(8·v_j), so j goes at most 1 + 4·v_j/v
-- times in that half; if v_j is more, j goes at most once in its time to live, W/(2·ttl) < 4·v_j/v
-- times for a time to live of ten seconds or more. All together at most D + 4·V/v calls in W/2
-- seconds, and C·W/2 were made. (v as its class says. A class that is too high costs a place in one
-- page, in which it is corrected; one that is too low is corrected by recount_viewers, within
-- keys / 250 seconds.)
-- Why 10 seconds: what many watch is served soon after it goes stale, without asking those who wait
-- much longer for it. tests/model/test_refresh_fairness.py, 10,000 keys, 167 calls a second wanted
-- and 10 had: with 0.1 s 33 % of viewers see fresh and the longest wait is 1,590 s; with 10 s 42 %
-- and 1,730 s; "most viewers first" 62 %, and 9,400 keys are never refreshed.
--
-- Half open, what is queued is the probe (R13): a key that is not failing and had data, so that
-- nobody's bad key keeps the others waiting; keys that are failing only if there is no other, from
-- failing_until on (may_probe).
CREATE OR REPLACE FUNCTION livewell.order_refreshes(
    p_upstream text, p_types text[], p_keys text[], p_dues timestamptz[], p_viewers integer[],
    p_wanted timestamptz[], p_stalled text[], p_now timestamptz)
RETURNS TABLE (
    name text, key text, keys_max smallint, size bigint, lane integer, can boolean, stalled boolean)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_probes    boolean[] := livewell.may_probe(p_upstream, p_types, p_keys, p_viewers, p_now);
BEGIN
    RETURN QUERY
    WITH types AS MATERIALIZED (
        SELECT t.*, livewell.expected_size(t.upstream, t.name, t.size_estimate) AS size,
               livewell.refresh_queue(t.upstream, t.pool) AS queue
        FROM livewell.data_type t WHERE t.name = ANY (p_types)
    )
    SELECT g.name, g.key, t.keys_max, t.size,
           CASE WHEN t.strategy = 'scheduled' OR g.viewers = 0 THEN 1 ELSE 0 END AS lane,
           t.name IS NOT NULL AND t.paused_at IS NULL AND t.parked_reason IS NULL
               AND q.name IS NOT NULL AS can,
           q.name = ANY (p_stalled) AS stalled
    FROM unnest(p_types, p_keys, p_dues, p_viewers, p_wanted)
         WITH ORDINALITY AS g (name, key, due_at, viewers, wanted_at, place)
    LEFT JOIN types t ON t.name = g.name
    LEFT JOIN livewell.queue q ON q.name = t.queue
    WHERE (g.viewers > 0 OR t.prefetch AND g.wanted_at > p_now - interval '1 day')
      AND coalesce(v_probes[g.place], true)
    ORDER BY 5, g.viewers * (extract(epoch FROM p_now - g.due_at) + 10) DESC, g.due_at;
END
$$;
COMMENT ON FUNCTION livewell.order_refreshes IS
    'The due keys that somebody wants, by viewers and waiting, lane 0 before lane 1.';
REVOKE ALL ON FUNCTION livewell.order_refreshes FROM PUBLIC;

-- ── refresh/functions/due/park_keys.sql ──
-- Park keys that nobody watches and nobody waits for: due_at becomes NULL, and costs nothing until
-- somebody comes.
--
-- Called by: park_unwatched, for keys that had no viewers. Index: ledger_pkey,
--            subscription_key_idx, viewer_session_pkey.
-- Lock first, count in the next statement (race-tested: otherwise a watched key sleeps for ever).
-- FOR UPDATE, the only lock that a subscriber's KEY SHARE conflicts with: who subscribes now waits
-- for us and then sees the key parked; whose subscription is not committed yet makes us skip the
-- row; who committed before our lock is counted.
CREATE OR REPLACE FUNCTION livewell.park_keys(p_types text[], p_keys text[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_since     timestamptz := p_now - interval '5 minutes';
    v_types     text[];
    v_keys      text[];
    v_parked    integer;
BEGIN
    SELECT array_agg(x.data_type), array_agg(x.key) INTO v_types, v_keys FROM (
        SELECT l.data_type, l.key FROM unnest(p_types, p_keys) AS g (name, key)
        JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
        WHERE l.due_at <= p_now FOR UPDATE OF l SKIP LOCKED) x;
    UPDATE livewell.ledger l SET due_at = NULL, demand_class = 1       -- whoever comes is one
    FROM unnest(v_types, v_keys) AS g (name, key)
    WHERE l.data_type = g.name AND l.key = g.key
      AND NOT (
          coalesce(l.demanded_at > p_now - interval '1 minute', false)
              AND coalesce(l.checked_at < l.demanded_at, true))
      AND NOT EXISTS (
          SELECT FROM livewell.subscription b
          JOIN livewell.viewer_session v ON v.id = b.session_id
          WHERE b.data_type = g.name AND b.key = g.key AND v.seen_at > v_since);
    GET DIAGNOSTICS v_parked = ROW_COUNT;
    RETURN v_parked;
END
$$;
COMMENT ON FUNCTION livewell.park_keys IS
    'Parks those of the given due keys that nobody watches; answers how many.';
REVOKE ALL ON FUNCTION livewell.park_keys FROM PUBLIC;

-- ── refresh/functions/due/park_unwatched.sql ──
-- Park the keys of a page that nobody watches, at most 1,000; a prefetched key stays awake for a
-- day after somebody wanted it.
--
-- Called by: dispatch_due. park_keys locks, counts again and parks. Index: data_type_pkey.
-- The planner settings of dispatch_due hold here too: to set them again takes 45 µs.
CREATE OR REPLACE FUNCTION livewell.park_unwatched(
    p_types text[], p_keys text[], p_viewers integer[], p_wanted timestamptz[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_parked integer;
BEGIN
    SELECT livewell.park_keys(array_agg(g.name), array_agg(g.key), p_now) INTO v_parked FROM (
        SELECT g.name, g.key
        FROM unnest(p_types, p_keys, p_viewers, p_wanted) AS g (name, key, viewers, wanted_at)
        LEFT JOIN livewell.data_type t ON t.name = g.name
        WHERE g.viewers = 0
          AND NOT (coalesce(t.prefetch, false)
                   AND coalesce(g.wanted_at > p_now - interval '1 day', false))
        LIMIT 1000) g
    HAVING count(*) > 0;
    RETURN coalesce(v_parked, 0);
END
$$;
COMMENT ON FUNCTION livewell.park_unwatched IS
    'Parks those keys of a page that nobody watches; answers how many.';
REVOKE ALL ON FUNCTION livewell.park_unwatched FROM PUBLIC;

-- ── refresh/functions/due/plan_cron.sql ──
-- Plan the walk of a scheduled type, as the due check of 0.6.0 does it. Goes with 0.8.
--
-- Called by: the due check of workers of 0.6.0, which reads the cron text. Schedulers since 0.7.0 call
--            plan_schedule() themselves, with the true gap.
CREATE OR REPLACE FUNCTION livewell.plan_cron(
    p_type text, p_cron text, p_zone text, p_due timestamptz)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    RETURN livewell.plan_schedule('walk.' || p_type, p_cron, p_zone, p_due, interval '1 day');
END
$$;
COMMENT ON FUNCTION livewell.plan_cron IS 'Sets when a scheduled type walks next, for workers of 0.6.0.';
REVOKE ALL ON FUNCTION livewell.plan_cron FROM PUBLIC;

-- ── refresh/functions/due/queue_chosen.sql ──
-- Lock the keys that were chosen, look at them again, and make jobs of those that are truly stale.
--
-- Called by: dispatch_due, with what choose_refreshes answers: arrays in the order of the jobs.
-- Index:     ledger_pkey, dead_job_refresh_idx, job_unique_key_idx.
-- The planner settings of dispatch_due hold here too: to set them again takes 45 µs.
-- due_at of what was queued is now + 2 minutes: however the job ends, or if it is lost, the key
-- comes back; the unique key prevents a second job (R8).
-- NO KEY UPDATE, so that a key with thousands of subscribers a second, whose row is always
-- share-locked by some, is not skipped for ever; only parking takes FOR UPDATE.
CREATE OR REPLACE FUNCTION livewell.queue_chosen(
    p_types text[], p_keys text[], p_lanes integer[], p_calls integer[], p_now timestamptz)
RETURNS TABLE (inserted integer, merged integer, failed integer, queues text[])
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_locked    record;                 -- nobody else has them: as arrays
    v_ready     boolean[];              -- which of those are stale
    v_types     text[];                 -- and these are
    v_keys      text[];
    v_lanes     integer[];
    v_calls     integer[];
BEGIN
    inserted := 0;
    merged := 0;
    failed := 0;
    queues := '{}';
    SELECT array_agg(x.name ORDER BY x.place) AS types, array_agg(x.key ORDER BY x.place) AS keys,
           array_agg(x.lane ORDER BY x.place) AS lanes, array_agg(x.call ORDER BY x.place) AS calls
    INTO v_locked FROM (
        SELECT g.name, g.key, g.lane, g.call, g.place
        FROM unnest(p_types, p_keys, p_lanes, p_calls)
             WITH ORDINALITY AS g (name, key, lane, call, place)
        JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
        FOR NO KEY UPDATE OF l SKIP LOCKED) x;
    IF v_locked.keys IS NOT NULL THEN
        failed := livewell.fail_dead(v_locked.types, v_locked.keys, p_now);
        v_ready := livewell.ready_keys(v_locked.types, v_locked.keys, p_now);
        SELECT array_agg(g.name ORDER BY g.place), array_agg(g.key ORDER BY g.place),
               array_agg(g.lane ORDER BY g.place), array_agg(g.call ORDER BY g.place)
        INTO v_types, v_keys, v_lanes, v_calls
        FROM unnest(v_locked.types, v_locked.keys, v_locked.lanes, v_locked.calls, v_ready)
             WITH ORDINALITY AS g (name, key, lane, call, ready, place)
        WHERE g.ready;
        UPDATE livewell.ledger l
        SET due_at = p_now + interval '2 minutes',
            wanted_at = CASE g.lane WHEN 0 THEN p_now ELSE l.wanted_at END
        FROM unnest(v_types, v_keys, v_lanes) AS g (name, key, lane)
        WHERE l.data_type = g.name AND l.key = g.key;
        SELECT e.inserted, e.merged, e.queues INTO inserted, merged, queues
        FROM livewell.enqueue_refreshes(v_types, v_keys, v_lanes, v_calls) AS e;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.queue_chosen IS
    'Locks chosen keys, checks them again and queues the refresh of those that are stale.';
REVOKE ALL ON FUNCTION livewell.queue_chosen FROM PUBLIC;

-- ── refresh/functions/due/ready_keys.sql ──
-- Which of these locked keys are truly to be fetched now; those that are not get the due_at they
-- should have had.
--
-- Called by: queue_chosen. due_at is an index, never a verdict: a key may have been stored, backed
--            off or given another time to live since.
-- What is due is stale as a rule, so stale_at is asked first: is_stale would ask it too, and rows
-- that are handed on are unpacked each time (12 µs a key).
-- A rule that cannot be computed counts as stale, and leaves a warning (R6, contract 4). Index:
-- ledger_pkey, data_type_pkey.
CREATE OR REPLACE FUNCTION livewell.ready_keys(p_types text[], p_keys text[], p_now timestamptz)
RETURNS boolean[]
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_ready     boolean[];
    v_dues      timestamptz[];
    v_rows      record;
BEGIN
    <<together>>
    BEGIN
        -- Who waits for a read-through may have asked for a younger value than the time to live
        -- gives.
        WITH rules AS MATERIALIZED (
            -- See judge_keys.
            SELECT jsonb_populate_record(d, '{"definition": {}, "columns": []}') AS rule, d.name
            FROM livewell.data_type d
            WHERE d.name = ANY (p_types)
        )
        SELECT array_agg(c.ready ORDER BY c.place),
               array_agg(
                   CASE WHEN NOT c.ready THEN livewell.next_due(c.rule, c.ledger, p_now) END
                   ORDER BY c.place)
        INTO v_ready, v_dues FROM (
            SELECT g.place, t.rule, l AS ledger,
                   l.due_at <= p_now AND coalesce(l.retry_at <= p_now, true)
                   AND (
                       livewell.stale_at(t.rule, l) <= p_now OR livewell.is_stale(t.rule, l, p_now)
                           OR coalesce(
                               l.demanded_at > p_now - interval '1 minute'
                                   AND l.checked_at < l.demanded_at,
                               false)) AS ready
            FROM unnest(p_types, p_keys) WITH ORDINALITY AS g (name, key, place)
            LEFT JOIN rules t ON t.name = g.name
            LEFT JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
            OFFSET 0) c;        -- so that the rule is computed once
    EXCEPTION WHEN others THEN
        v_ready := NULL;
        v_dues := NULL;
        FOR v_rows IN
            SELECT g.place, g.name, t AS type, l AS ledger
            FROM unnest(p_types, p_keys) WITH ORDINALITY AS g (name, key, place)
            JOIN livewell.data_type t ON t.name = g.name
            JOIN livewell.ledger l ON l.data_type = g.name AND l.key = g.key
        LOOP
            <<alone>>
            BEGIN
                v_dues[v_rows.place] := livewell.next_due(v_rows.type, v_rows.ledger, p_now);
                v_ready[v_rows.place] := v_dues[v_rows.place] <= p_now
                    AND coalesce((v_rows.ledger).due_at <= p_now, false);
            EXCEPTION WHEN others THEN
                PERFORM livewell.warn(
                    'refresh.check', v_rows.name || ': a check failed and counted as stale',
                    SQLERRM);
                v_ready[v_rows.place] := true;
            END alone;
        END LOOP;
    END together;
    IF false = ANY (v_ready) THEN
        UPDATE livewell.ledger l SET due_at = g.due_at
        FROM unnest(p_types, p_keys, v_ready, v_dues) AS g (name, key, ready, due_at)
        WHERE l.data_type = g.name AND l.key = g.key AND NOT g.ready AND l.due_at <= p_now;
    END IF;
    RETURN v_ready;
END
$$;
COMMENT ON FUNCTION livewell.ready_keys IS
    'Which of the given locked keys are stale and may be asked for now.';
REVOKE ALL ON FUNCTION livewell.ready_keys FROM PUBLIC;

-- ── refresh/functions/due/record_walk.sql ──
-- Write down a page of a walk that was being taken while the schema was upgraded. Goes with 0.8.
--
-- Called by: dispatch_scheduled() of 0.6.0, in the middle of a page. Since 0.7.0 it calls count_open_run().
CREATE OR REPLACE FUNCTION livewell.record_walk(
    p_name text, p_fence bigint, p_type text, p_due timestamptz, p_rows integer, p_first boolean,
    p_over boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM livewell.count_open_run(r.id, NULL, p_rows, p_over)
    FROM livewell.run r WHERE r.schedule = 'walk.' || p_type AND r.state = 'running';
END
$$;
COMMENT ON FUNCTION livewell.record_walk IS 'Counts a page of a walk, for pages of 0.6.0 that are under way.';
REVOKE ALL ON FUNCTION livewell.record_walk FROM PUBLIC;

-- ── refresh/functions/due/refresh_jobs.sql ──
-- The jobs that refresh these keys, as enqueue_jobs takes them: one row per key whose type exists.
--
-- Called by: enqueue_refreshes (due check and walks), demand_refresh (read-through). The one place
-- that says what such a job looks like. The lane is the caller's, never the registry's
-- (contract 8).
-- unique_key: one job per (type, key), however many ask (R8); policy raise gives it the better
--             lane.
-- group_key:  never two calls at once for one key of an upstream.
-- call_key:   jobs that share it may share one HTTP call; NULL would share with all. Keys of a type
--             with a batch endpoint share by the caller's number of the call. Without p_calls as
--             many ids in a row as a call may have keys share one, so jobs that were made one by
--             one go together, and a call never has more. Keys that fail go with each other, never
--             with those that are well (the !): what they bring may make the whole answer
--             unreadable (R14).
-- units:      expected_size, what the limiter reserves.
-- payload:    the key, and the type as it is now.
--     etag, last_modified, hash: "has it changed since what is stored?", if what is stored was read
--         by the type as it is now: an older definition may have left out columns that the upstream
--         would not send again. One job per key, so nothing else can be stored before it is asked;
--         and the store compares the hash once more.
--     since: of a series, the source's time of what is stored: the worker asks only for what can
--         still change since then, if the type has a revision window.
--     fresh: on a connection of its own, because the key failed or was missing last time, and an
--         answer like that proves nothing on a shared one (ADR 0011).
-- Arrays, not a call for each key: to make 500 payloads took 19 ms of a due check by a call for
-- each, and 4 ms by one call for all. Index: data_type_pkey, ledger_pkey.
CREATE OR REPLACE FUNCTION livewell.refresh_jobs(
    p_types text[], p_keys text[], p_lanes integer[], p_calls integer[] DEFAULT NULL)
RETURNS TABLE (
    id bigint, queue text, kind text, lane integer, unique_key text, policy text, group_key text,
    call_key text, units bigint, max_attempts integer, payload jsonb)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_n     integer := coalesce(cardinality(p_keys), 0);
    v_ids   bigint[];
BEGIN
    v_ids := ARRAY(
        SELECT b + o
        FROM livewell.reserve_job_ids((v_n + 63) / 64) AS b, generate_series(0, 63) AS o
        ORDER BY 1 LIMIT v_n);
    RETURN QUERY
    WITH types AS MATERIALIZED (
        SELECT t.name, t.version, t.applied_at, t.keys_max, t.rows_kind = 'series' AS series,
               livewell.refresh_queue(t.upstream, t.pool) AS queue,
               livewell.expected_size(t.upstream, t.name, t.size_estimate) AS units
        FROM livewell.data_type t WHERE t.name = ANY (p_types)
    )
    SELECT v_ids[g.place], t.queue, 'livewell.refresh', g.lane,
           g.type || ':' || g.key, 'raise', g.key,
           CASE
               WHEN t.keys_max = 1 THEN g.type || ':' || g.key
               ELSE g.type || '#'
                    || coalesce(
                        v_ids[1] || '.' || g.call,
                        (v_ids[g.place] / 64 / t.keys_max)::pg_catalog.text)
                    || CASE WHEN l.failing_since IS NOT NULL THEN '!' ELSE '' END
           END,
           t.units, 4,
           CASE
               WHEN x.ill OR x.known THEN jsonb_strip_nulls(jsonb_build_object(
                   'type', g.type, 'key', g.key, 'version', t.version,
                   'fresh', nullif(x.ill, false),
                   'etag', CASE WHEN x.known THEN l.etag END,
                   'last_modified', CASE WHEN x.known THEN l.last_modified END,
                   'hash', CASE WHEN x.known THEN encode(l.content_hash, 'hex') END,
                   'since', CASE WHEN x.known AND t.series THEN l.source_at END))
               ELSE jsonb_build_object('type', g.type, 'key', g.key, 'version', t.version)
           END
    FROM unnest(p_types, p_keys, p_lanes, p_calls)
         WITH ORDINALITY AS g (type, key, lane, call, place)
    JOIN types t ON t.name = g.type
    LEFT JOIN livewell.ledger l ON l.data_type = g.type AND l.key = g.key
    CROSS JOIN LATERAL (
        SELECT l.missing OR l.failing_since IS NOT NULL AS ill,
               l.fetched_at IS NOT NULL AND l.checked_at > t.applied_at
               AND (t.series OR l.etag IS NOT NULL OR l.last_modified IS NOT NULL) AS known) x;
END
$$;
COMMENT ON FUNCTION livewell.refresh_jobs IS
    'The jobs that refresh keys, as enqueue_jobs takes them.';
REVOKE ALL ON FUNCTION livewell.refresh_jobs FROM PUBLIC;

-- ── refresh/functions/due/refresh_queue.sql ──
-- The name of the queue that refreshes go through: refresh.<upstream>, or refresh.<upstream>.<pool>
-- for types with a pool of workers of their own.
--
-- Called by: many functions; every function that names such a queue, whatever its package.
--            refresh/queues.py says the same to Python, and a test compares the two.
-- Call it once for a type, not for each key: a pinned search_path keeps it from being inlined.
CREATE OR REPLACE FUNCTION livewell.refresh_queue(p_upstream text, p_pool text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN 'refresh.' || p_upstream || coalesce('.' || p_pool, '');
END
$$;
COMMENT ON FUNCTION livewell.refresh_queue IS 'The queue of the types of an upstream and a pool.';
REVOKE ALL ON FUNCTION livewell.refresh_queue FROM PUBLIC;

-- ── refresh/functions/due/refresh_wanted.sql ──
-- Whether a reader wants a refresh of a key: none (fresh enough), wanted, or why it cannot be had:
-- missing (the upstream says there is no such key), backed_off.
--
-- Called by: demand_refresh; read_through, before and after it has locked the row.
CREATE OR REPLACE FUNCTION livewell.refresh_wanted(
    p_type livewell.data_type, p_ledger livewell.ledger, p_max_age float8, p_now timestamptz)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    IF p_ledger.key IS NULL THEN
        RETURN 'wanted';
    END IF;
    IF p_ledger.missing AND livewell.stale_at(p_type, p_ledger) > p_now THEN
        RETURN 'missing';
    END IF;
    IF p_ledger.fetched_at IS NOT NULL AND NOT p_ledger.missing
       AND (
           CASE
               WHEN p_max_age IS NULL THEN NOT livewell.is_stale(p_type, p_ledger, p_now)
               ELSE p_ledger.checked_at > p_now - greatest(p_max_age, 0) * interval '1 second'
           END) THEN
        RETURN 'none';
    END IF;
    RETURN CASE WHEN p_ledger.retry_at > p_now THEN 'backed_off' ELSE 'wanted' END;
END
$$;
COMMENT ON FUNCTION livewell.refresh_wanted IS
    'Whether a key is fresh enough for a reader, may be refreshed, or is known to be missing or '
    'failing.';
REVOKE ALL ON FUNCTION livewell.refresh_wanted FROM PUBLIC;

-- ── refresh/functions/due/sample_refresh.sql ──
-- Keys by type and verdict, subscriptions by type, sessions and viewers: counted while they are
-- few, estimated from some of the pages when they are many.
--
-- Called by: state_refresh, at most every ten seconds.
-- Cost:      about 40 pages of the ledger, or 1,700 keys (a verdict takes 10 µs), 200 of the
--            subscriptions and of the sessions where there are more than 5,000 of them.
-- Index:     viewer_session_seen_idx.
-- A key is followed while it has a due_at: it is watched, or was until the due check noticed.
-- Verdicts are those of followed keys; of others it does not matter how old they are.
-- quiet: of a type's followed keys, those that nothing has happened to for a minute and that are
-- not fresh.
CREATE OR REPLACE FUNCTION livewell.sample_refresh(p_now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_subscriptions CONSTANT integer := 5000;
    c_sessions      CONSTANT integer := 5000;
    v_many          boolean;
    v_ledger        record;
    v_subscriptions record;
    v_session_pages record;
    v_keys          jsonb;
    v_watched       jsonb;
    v_sessions      bigint;
    v_viewers       bigint;
BEGIN
    SELECT * INTO v_ledger FROM livewell.table_pages('livewell.ledger', 40);
    -- At 100 % every page is read: the same as a count.
    SELECT jsonb_agg(jsonb_build_array(
        g.data_type, g.verdict, round(g.n * 100 / v_ledger.percent),
        round(g.quiet * 100 / v_ledger.percent)))
    INTO v_keys
    FROM (
        SELECT x.data_type, x.verdict, count(*) AS n,
               count(*) FILTER (
                   WHERE x.verdict NOT IN ('fresh', 'unverifiable', 'parked')
                     AND x.status_at < p_now - interval '1 minute') AS quiet
        FROM (
            SELECT l.data_type, l.status_at,
                   CASE
                       WHEN l.due_at IS NULL THEN 'parked'
                       ELSE livewell.verdict(t, l, p_now)
                   END AS verdict
            FROM livewell.ledger l TABLESAMPLE SYSTEM (v_ledger.percent) REPEATABLE (7601)
            JOIN livewell.data_type t ON t.name = l.data_type) x
        GROUP BY x.data_type, x.verdict) g;
    SELECT jsonb_agg(jsonb_build_array(g.data_type, g.n)),
           coalesce(sum(g.n) = c_subscriptions, false)
    INTO v_watched, v_many
    FROM (
        SELECT x.data_type, count(*) AS n
        FROM (SELECT s.data_type FROM livewell.subscription s LIMIT c_subscriptions) x
        GROUP BY x.data_type) g;
    IF v_many THEN
        SELECT * INTO v_subscriptions FROM livewell.table_pages('livewell.subscription', 200);
        SELECT jsonb_agg(jsonb_build_array(g.data_type, round(g.n * 100 / v_subscriptions.percent)))
        INTO v_watched
        FROM (
            SELECT s.data_type, count(*) AS n
            FROM livewell.subscription s TABLESAMPLE SYSTEM (
                v_subscriptions.percent) REPEATABLE (7601)
            GROUP BY s.data_type) g;
    END IF;

    SELECT count(*), count(DISTINCT x.user_id) INTO v_sessions, v_viewers
    FROM (
        SELECT v.user_id FROM livewell.viewer_session v
        WHERE v.seen_at > p_now - interval '5 minutes' LIMIT c_sessions) x;
    IF v_sessions = c_sessions THEN
        v_many := true;
        SELECT * INTO v_session_pages FROM livewell.table_pages('livewell.viewer_session', 200);
        SELECT round(count(*) * 100 / v_session_pages.percent),
               round(count(*) * 100 / v_session_pages.percent * v_viewers / c_sessions)
        INTO v_sessions, v_viewers
        FROM livewell.viewer_session v TABLESAMPLE SYSTEM (
            v_session_pages.percent) REPEATABLE (7601)
        WHERE v.seen_at > p_now - interval '5 minutes';
    END IF;
    RETURN jsonb_build_object(
        'how', CASE WHEN v_ledger.percent = 100 AND NOT v_many THEN 'exact' ELSE 'estimated' END,
        'keys', coalesce(v_keys, '[]'), 'subscriptions', coalesce(v_watched, '[]'),
        'sessions', v_sessions, 'viewers', v_viewers);
END
$$;
COMMENT ON FUNCTION livewell.sample_refresh IS
    'Keys by verdict, subscriptions by type, sessions and viewers, from a bounded number of pages.';
REVOKE ALL ON FUNCTION livewell.sample_refresh FROM PUBLIC;

-- ── refresh/functions/due/show_walk.sql ──
-- Bring the schedule of one scheduled type in line with the registry, as the due check of 0.6.0 does it.
-- Goes with 0.8.
--
-- Called by: the due check of workers of 0.6.0, for what list_walks() answers as not shown. Since 0.7.0
--            sync_walks() does it for all types. p_gap is not used: the scheduler knows the true one.
CREATE OR REPLACE FUNCTION livewell.show_walk(p_type text, p_gap interval)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM livewell.declare_open_schedule(
        'walk.' || t.name, t.cron, t.zone, livewell.walk_held(t))
    FROM livewell.data_type t WHERE t.name = p_type AND t.strategy = 'scheduled';
END
$$;
COMMENT ON FUNCTION livewell.show_walk IS 'Declares the schedule of a scheduled type, for workers of 0.6.0.';
REVOKE ALL ON FUNCTION livewell.show_walk FROM PUBLIC;

-- ── refresh/functions/due/sync_walks.sql ──
-- Bring the schedules walk.<type> in line with the registry: one for each scheduled type, with its cron
-- text, held while the type cannot walk (R19).
--
-- Called by: refresh/due/walk.py, once a second, by the holder of the due check.
-- Index:     none: data_type and schedule are small, at most 1,000 rows each.
-- Writes only what differs. So a type whose file changed takes effect within a second, without a restart.
-- A type that cannot have a schedule (there are too many, its cron text is too long) is warned of, and
-- stops no other.
CREATE OR REPLACE FUNCTION livewell.sync_walks()
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_walk record;
BEGIN
    PERFORM livewell.remove_open_schedule(s.name)
    FROM livewell.schedule s
    WHERE s.open_ended AND starts_with(s.name, 'walk.') AND NOT EXISTS (
        SELECT FROM livewell.data_type t
        WHERE t.name = substr(s.name, 6) AND t.strategy = 'scheduled');
    FOR v_walk IN
        SELECT t.name, t.cron, t.zone, h.held
        FROM livewell.data_type t
        CROSS JOIN LATERAL (SELECT livewell.walk_held(t) AS held) h
        LEFT JOIN livewell.schedule s ON s.name = 'walk.' || t.name AND s.open_ended
        WHERE t.strategy = 'scheduled'
          AND (s.cron, s.zone, s.held_at IS NOT NULL) IS DISTINCT FROM (t.cron, t.zone, h.held)
        ORDER BY t.name
    LOOP
        <<declaring>>
        BEGIN
            PERFORM livewell.declare_open_schedule(
                'walk.' || v_walk.name, v_walk.cron, v_walk.zone, v_walk.held);
        EXCEPTION WHEN check_violation OR SQLSTATE 'LW003' THEN
            PERFORM livewell.warn('refresh.schedule', 'a scheduled type has no schedule',
                                  v_walk.name || ': ' || SQLERRM);
        END declaring;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.sync_walks IS 'Declares, changes, holds and removes the schedules of scheduled types.';
REVOKE ALL ON FUNCTION livewell.sync_walks FROM PUBLIC;

-- ── refresh/functions/due/walk_held.sql ──
-- True if a scheduled type cannot walk now: it is paused or parked, or its upstream is paused.
--
-- Called by: show_walk; sync_walks(), dispatch_scheduled(), list_walks().
-- Index:     upstream_pkey
CREATE OR REPLACE FUNCTION livewell.walk_held(p_type livewell.data_type)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT (p_type).paused_at IS NOT NULL OR (p_type).parked_reason IS NOT NULL OR EXISTS (
        SELECT FROM livewell.upstream u WHERE u.name = (p_type).upstream AND u.paused_at IS NOT NULL)
$$;
COMMENT ON FUNCTION livewell.walk_held IS 'Whether a pause keeps a scheduled type from walking.';
REVOKE ALL ON FUNCTION livewell.walk_held FROM PUBLIC;

-- ── refresh/functions/operate/plan_groups.sql ──
-- Who watches how many keys with which time to live, as groups of keys that are alike.
--
-- Called by: plan_state. Reads all subscriptions, up to p_subscriptions_max.
-- A group:   watched keys of one type, alike in time to live (two digits of it) and in viewers
--            (within a fifth). calls: how many calls refresh all of them once. Keys that one call
--            has brought have one checked_at; with the same time to live they go stale together and
--            come by one call again, so each of m such keys is 1/m of a call. state: kept; missing
--            (asked again after negative_ttl, and never fresh); failing (backed off); stopped (type
--            or upstream paused or parked: no calls, and stale sooner or later).
CREATE OR REPLACE FUNCTION livewell.plan_groups(
    p_now timestamptz, p_subscriptions_max integer, p_groups_max integer, p_types_max integer)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_answer    jsonb;
BEGIN
    WITH types AS MATERIALIZED (
        SELECT t.name, t.upstream, t.strategy, t.ttl, t.negative_ttl, t.keys_max, t.prefetch,
               t.paused_at IS NOT NULL OR t.parked_reason IS NOT NULL
                   OR u.paused_at IS NOT NULL AS stopped
        FROM livewell.data_type t
        JOIN livewell.upstream u ON u.name = t.upstream ORDER BY t.name LIMIT p_types_max
    ), watched AS MATERIALIZED (
        SELECT s.data_type, s.key, s.viewers FROM livewell.watched_keys(p_subscriptions_max) s
    ), wanted AS (
        SELECT w.data_type, w.key, w.viewers FROM watched w
        UNION ALL
        -- Prefetched: nobody looks now, somebody did within a day.
        SELECT p.data_type, p.key, 0 FROM (
            SELECT l.data_type, l.key FROM types t JOIN livewell.ledger l ON l.data_type = t.name
            WHERE t.prefetch AND l.due_at IS NOT NULL AND l.wanted_at > p_now - interval '1 day'
              AND NOT EXISTS (
                  SELECT FROM watched w WHERE w.data_type = l.data_type AND w.key = l.key)
            LIMIT p_subscriptions_max) p
    ), keys AS (
        SELECT t.upstream, t.name, w.viewers, t.keys_max, l.checked_at,
               l.ttl_override IS NOT NULL AS own,
               CASE WHEN t.strategy = 'scheduled' OR w.viewers = 0 THEN 1 ELSE 0 END AS lane,
               CASE
                   WHEN t.stopped THEN 'stopped'
                   WHEN l.retry_at > p_now THEN 'failing'
                   WHEN l.missing THEN 'missing'
                   ELSE 'kept'
               END AS state,
               extract(epoch FROM CASE
                   WHEN l.missing THEN t.negative_ttl ELSE coalesce(l.ttl_override, t.ttl)
               END)::float8 AS ttl
        FROM wanted w
        JOIN types t ON t.name = w.data_type
        LEFT JOIN livewell.ledger l ON l.data_type = w.data_type AND l.key = w.key
    ), shared AS (
        SELECT k.*,
               1.0::float8 / CASE
                   WHEN k.keys_max = 1 THEN 1
                   WHEN k.checked_at IS NULL THEN k.keys_max
                   ELSE least(
                       count(*) OVER (PARTITION BY k.name, k.ttl, k.checked_at), k.keys_max)
               END AS calls
        FROM keys k
    ), alike AS (
        SELECT s.upstream, s.name, s.lane, s.state, s.own, count(*) AS keys,
               sum(s.viewers) AS viewers, sum(s.calls) AS calls, avg(s.ttl) AS ttl
        FROM shared s
        GROUP BY s.upstream, s.name, s.lane, s.state, s.own,
            round(s.ttl::numeric, 1 - floor(log(s.ttl::numeric))::integer),
            floor(ln(greatest(s.viewers, 1)) / ln(1.2))
        ORDER BY 6 DESC LIMIT p_groups_max
    )
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'upstream', a.upstream, 'type', a.name, 'lane', a.lane, 'state', a.state, 'own_ttl', a.own,
        'ttl_seconds', a.ttl,
        'keys', a.keys, 'viewers', a.viewers, 'calls', a.calls)), '[]') INTO v_answer FROM alike a;
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.plan_groups IS
    'Demand by type, time to live and viewers, as groups of watched keys.';
REVOKE ALL ON FUNCTION livewell.plan_groups FROM PUBLIC;

-- ── refresh/functions/operate/plan_state.sql ──
-- What a plan is computed from, as one document: who watches how many keys with which time to live,
-- what a key of each type costs as measured, and what each upstream allows (X4).
--
-- Called by: refresh/plan/report.py, for `livewell plan` and GET /v1/plan. The arithmetic is in
--            refresh/plan/demand.py.
-- Reads all subscriptions: for people who ask, never on the way of a refresh (contract 7). 100,000
-- sessions with 300,000 subscriptions over 38,000 keys: 1.1 to 2.3 s on two busy cores.
-- Bounds:    c_subscriptions_max subscriptions and c_groups_max groups are looked at, c_types_max
--            types; cut says that there were more.
CREATE OR REPLACE FUNCTION livewell.plan_state()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_subscriptions_max CONSTANT integer := 2000000;
    c_groups_max        CONSTANT integer := 5000;
    c_types_max         CONSTANT integer := 1000;
    v_now       timestamptz := livewell.now();
    v_groups    jsonb;
    v_types     jsonb;
    v_upstreams jsonb;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'a plan is made on the primary only; this server is a replica'
        USING ERRCODE = 'LW001';
    END IF;
    v_groups := livewell.plan_groups(v_now, c_subscriptions_max, c_groups_max, c_types_max);
    v_types := livewell.plan_types(v_now, c_types_max);
    v_upstreams := livewell.plan_upstreams(v_now, c_types_max);
    RETURN jsonb_build_object(
        'at', v_now, 'groups', v_groups, 'types', v_types, 'upstreams', v_upstreams,
        'cut', jsonb_array_length(v_groups) >= c_groups_max
                OR jsonb_array_length(v_types) >= c_types_max
               OR (
                   SELECT count(*)
                   FROM (
                       SELECT b.data_type FROM livewell.subscription b
                       LIMIT c_subscriptions_max) s) >= c_subscriptions_max);
END
$$;
COMMENT ON FUNCTION livewell.plan_state IS
    'Demand by type, time to live and viewers, measured costs, and what each upstream allows: what '
    'a plan is computed from.';
REVOKE ALL ON FUNCTION livewell.plan_state FROM PUBLIC;

-- ── refresh/functions/operate/plan_types.sql ──
-- What a key of each type costs, as measured, and how often it is asked for.
--
-- Called by: plan_state.
-- bytes_per_key and tries as counted in the last day (every answer costs, also one that is
-- refused); until something was counted, expected_size. open_share: how much of the next 30 days
-- its exchange is open, where the rule asks for it.
CREATE OR REPLACE FUNCTION livewell.plan_types(p_now timestamptz, p_types_max integer)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_answer    jsonb;
BEGIN
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'type', t.name, 'upstream', t.upstream, 'ttl_seconds', extract(epoch FROM t.ttl)::float8,
        'keys_max', t.keys_max, 'strategy', t.strategy,
        'cron', t.cron, 'zone', t.zone,
        'stopped', t.paused_at IS NOT NULL OR t.parked_reason IS NOT NULL,
        'measured', coalesce(c.good, 0),
        'bytes_per_key', coalesce(
                c.bytes / nullif(c.answers, 0),
                livewell.expected_size(t.upstream, t.name, t.size_estimate))::float8,
        'tries', coalesce(c.answers / nullif(c.good, 0), 1)::float8,
        'universe', CASE
                WHEN t.strategy = 'scheduled'
                    THEN (
                        SELECT count(*) FROM livewell.universe n
                        WHERE n.data_type = t.name AND n.active)
                ELSE 0
            END,
        'open_share', coalesce(o.share, 1)) ORDER BY t.name), '[]') INTO v_answer
    FROM (SELECT * FROM livewell.data_type d ORDER BY d.name LIMIT p_types_max) t
    JOIN livewell.upstream u ON u.name = t.upstream
    LEFT JOIN LATERAL (
        SELECT sum(r.n)::float8 AS answers,
               sum(r.n) FILTER (
                   WHERE r.outcome IN (
                       'stored', 'corrected', 'unchanged', 'missing', 'older'))::float8 AS good,
               CASE u.counts
                   WHEN 'wire' THEN sum(r.wire_bytes)
                   WHEN 'decoded' THEN sum(r.decoded_bytes)
                   ELSE greatest(sum(r.wire_bytes), sum(r.decoded_bytes))
               END::float8 AS bytes
        FROM livewell.refresh_count r
        WHERE r.hour > p_now - interval '1 day' AND r.data_type = t.name
          AND r.outcome <> 'type_changed') c ON true
    LEFT JOIN LATERAL (
        SELECT sum(extract(
            epoch FROM least(
                s.closes_at, p_now + interval '30 days') - greatest(s.opens_at, p_now)))::float8
            / 2592000 AS share
        FROM livewell.exchange_session s
        WHERE t.rule = 'session' AND s.calendar = t.calendar
          AND s.opens_at < p_now + interval '30 days' AND s.opens_at > p_now - interval '1 day'
          AND s.closes_at > p_now) o ON true;
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.plan_types IS 'What a key of each type costs, as measured.';
REVOKE ALL ON FUNCTION livewell.plan_types FROM PUBLIC;

-- ── refresh/functions/operate/plan_upstreams.sql ──
-- What each upstream allows, over all active credentials.
--
-- Called by: plan_state.
-- used:      [hours ago, units] for each hour that still counts for the budget. call_seconds: as
--            measured in the last hour.
CREATE OR REPLACE FUNCTION livewell.plan_upstreams(p_now timestamptz, p_upstreams_max integer)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_answer    jsonb;
BEGIN
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'upstream', u.name, 'paused', u.paused_at IS NOT NULL, 'credentials', c.n,
        'rate_calls', c.rate_calls, 'rate_seconds', l.rate_seconds,
        'permit_seconds', l.permit_seconds, 'reserve', l.reserve, 'concurrency', l.concurrency,
        'call_seconds', m.seconds, 'spent', g.calls, 'budget_units', l.budget_units * c.n,
        'budget_unit', l.budget_unit,
        'budget_stop', l.budget_stop, 'budget_background_stop', l.budget_background_stop,
        'budget_seconds', l.budget_seconds,
        'reset_seconds', CASE
                WHEN l.budget_resets IS NOT NULL
                    THEN extract(
                        epoch FROM livewell.budget_since(
                            l,
                            livewell.budget_since(l, p_now) + interval '36 hours') - p_now)::float8
            END,
        'used', b.used) ORDER BY u.name), '[]') INTO v_answer
    FROM (
        SELECT n.*, livewell.list_refresh_queues(n.name) AS queues FROM livewell.upstream n
        ORDER BY n.name LIMIT p_upstreams_max) u
    LEFT JOIN livewell.limiter l ON l.name = u.name
    LEFT JOIN LATERAL (
        SELECT count(*) AS n, sum(least(l.rate_calls, k.learnt_calls)) AS rate_calls
        FROM livewell.limiter_credential k
        WHERE k.limiter = u.name AND k.active) c ON true
    LEFT JOIN LATERAL (
        SELECT sum(s.ms)::float8 / nullif(sum(s.n), 0) / 1000 AS seconds FROM livewell.stat s
        WHERE s.minute > p_now - interval '1 hour' AND s.kind = 'livewell.refresh'
          AND s.queue = ANY (u.queues)) m ON true
    LEFT JOIN LATERAL (
        SELECT coalesce(sum(x.calls), 0) AS calls FROM (
            SELECT n.calls FROM livewell.limiter_grant n
            WHERE n.limiter = u.name AND n.at > p_now - l.rate_seconds * interval '1 second'
            UNION ALL
            SELECT f.calls FROM livewell.limiter_flight f
            WHERE f.limiter = u.name
              AND f.at > p_now - l.rate_seconds * interval '1 second') x) g ON true
    LEFT JOIN LATERAL (
        SELECT coalesce(
            jsonb_agg(jsonb_build_array(h.hours, h.units) ORDER BY h.hours DESC), '[]') AS used
        FROM (
            SELECT floor(
                extract(epoch FROM date_trunc('hour', p_now, 'UTC') - y.since)
                    / 3600)::float8 AS hours,
                   sum(y.units)::float8 AS units
            FROM livewell.limiter_usage y
            WHERE y.limiter = u.name AND l.budget_units IS NOT NULL
              AND y.since >= livewell.budget_since(l, p_now)
            GROUP BY 1) h) b ON true;
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.plan_upstreams IS 'What each upstream allows, and what of it is used.';
REVOKE ALL ON FUNCTION livewell.plan_upstreams FROM PUBLIC;

-- ── refresh/functions/operate/prune_refresh.sql ──
-- Delete what nobody wants any more: ledger rows of keys that never had a value, viewers without a
-- session, budgets and empty shares of strangers, counts that are old. One page of each; answers
-- how many rows went.
--
-- Called by: housekeeping, every hour, until it answers 0.
-- A ledger row goes when nobody watched, demanded or answered it for a day, nobody set a time to
-- live for it, no schedule walks it, no job is under way and no back-off holds it. Index:
-- ledger_empty_idx.
-- Lock, then look again, in statements of their own. FOR UPDATE is the lock that a subscriber's KEY
-- SHARE and a reader's NO KEY UPDATE conflict with: who holds one makes us skip the row; who waits
-- for us finds it gone and makes it anew (unpark, demand_refresh, set_ttl); whose subscription was
-- committed before our lock is seen by the second look (race-tested).
CREATE OR REPLACE FUNCTION livewell.prune_refresh(p_stat_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_before    timestamptz := v_now - interval '1 day';
    v_types     text[];
    v_keys      text[];
    v_users     text[];
    v_n         integer;
    v_all       integer := 0;
BEGIN
    SELECT array_agg(x.data_type), array_agg(x.key) INTO v_types, v_keys FROM (
        SELECT l.data_type, l.key FROM livewell.ledger l
        WHERE l.version = 0 AND l.status_at < v_before AND l.fetched_at IS NULL
          AND l.ttl_override IS NULL
          AND coalesce(
              greatest(l.demanded_at, l.wanted_at, l.checked_at, l.tried_at) < v_before, true)
            AND coalesce(l.retry_at < v_now, true)
          AND NOT EXISTS (
              SELECT FROM livewell.subscription b WHERE b.data_type = l.data_type AND b.key = l.key)
          AND NOT EXISTS (
              SELECT FROM livewell.universe u
              WHERE u.data_type = l.data_type AND u.key = l.key AND u.active)
        ORDER BY l.status_at LIMIT p_limit FOR UPDATE OF l SKIP LOCKED) x;
    DELETE FROM livewell.ledger l USING unnest(v_types, v_keys) AS g (name, key)
    WHERE l.data_type = g.name AND l.key = g.key AND l.version = 0
      AND coalesce(greatest(l.demanded_at, l.wanted_at) < v_before, true)
      AND NOT EXISTS (
          SELECT FROM livewell.subscription b WHERE b.data_type = g.name AND b.key = g.key)
      AND NOT EXISTS (
          SELECT FROM livewell.universe u WHERE u.data_type = g.name AND u.key = g.key AND u.active)
      AND NOT EXISTS (SELECT FROM livewell.job j JOIN livewell.data_type t ON t.name = g.name
                      WHERE j.queue = livewell.refresh_queue(t.upstream, t.pool)
                        AND j.unique_key = g.name || ':' || g.key);
    GET DIAGNOSTICS v_all = ROW_COUNT;

    SELECT array_agg(x.user_id) INTO v_users FROM (
        SELECT w.user_id FROM livewell.viewer w
        WHERE w.subscriptions = 0 AND coalesce(w.cold_minute < v_now - interval '5 minutes', true)
          AND NOT EXISTS (SELECT FROM livewell.viewer_session s WHERE s.user_id = w.user_id)
        LIMIT p_limit FOR UPDATE OF w SKIP LOCKED) x;
    DELETE FROM livewell.viewer w
    WHERE w.user_id = ANY (v_users) AND w.subscriptions = 0
      AND NOT EXISTS (SELECT FROM livewell.viewer_session s WHERE s.user_id = w.user_id);
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;

    DELETE FROM livewell.cold_budget b
    WHERE b.name = ANY (ARRAY(
        SELECT o.name FROM livewell.cold_budget o
        WHERE o.minute < v_now - interval '5 minutes' LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;

    DELETE FROM livewell.session_share h
    WHERE h.name = ANY (ARRAY(
        SELECT o.name FROM livewell.session_share o
        WHERE o.sessions = 0 LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;

    DELETE FROM livewell.refresh_count c USING (
        SELECT o.hour, o.data_type, o.outcome FROM livewell.refresh_count o
        WHERE o.hour < v_now - make_interval(days => p_stat_days) ORDER BY o.hour LIMIT p_limit) x
    WHERE c.hour = x.hour AND c.data_type = x.data_type AND c.outcome = x.outcome;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_all + v_n;
END
$$;
COMMENT ON FUNCTION livewell.prune_refresh IS
    'Deletes a page of ledger rows, viewers, budgets and counts that nobody needs; answers how '
    'many.';
REVOKE ALL ON FUNCTION livewell.prune_refresh FROM PUBLIC;

-- ── refresh/functions/operate/state_refresh.sql ──
-- The state of the refresh engine: who watches, how fresh each type is, what is due, what became of
-- refreshes, and whether the size estimates are right.
--
-- Called by: system_state. Keys, subscriptions, sessions and viewers come from a sample that is at
--            most ten seconds old (sample_age_seconds says how old, how whether it was counted or
--            estimated); what is due
-- is counted by index up to 10,000 for an upstream; refreshes of the last 24 hours are the sum of
-- one row per type, outcome and hour.
-- Index:     refresh_count_pkey, ledger_due_idx, stat_pkey.
CREATE OR REPLACE FUNCTION livewell.state_refresh()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    c_done      CONSTANT text[] := '{stored,corrected,unchanged,missing}';
    c_quiet     CONSTANT text[] :=
        '{stored,corrected,unchanged,missing,type_changed,singly,forgotten,fenced}';
    v_now       timestamptz := livewell.now();
    v_hour      timestamptz := date_trunc('hour', v_now, 'UTC');
    v_due_check text := livewell.due_check_name();
    v_sample    record;
    v_types     jsonb;
BEGIN
    SELECT * INTO v_sample FROM livewell.find_sample('refresh', v_now);
    IF v_sample.wanted THEN
        v_sample.value := livewell.sample_refresh(v_now);
        v_sample.at := v_now;
        PERFORM livewell.keep_sample('refresh', v_now, v_sample.value);
    END IF;

    WITH keys AS (
        SELECT k ->> 0 AS data_type, jsonb_object_agg(k ->> 1, (k ->> 2)::bigint) AS verdicts,
               sum((k ->> 3)::bigint) AS quiet
        FROM jsonb_array_elements(v_sample.value -> 'keys') AS k GROUP BY k ->> 0
    ), watched AS (
        SELECT k ->> 0 AS data_type, (k ->> 1)::bigint AS n
        FROM jsonb_array_elements(v_sample.value -> 'subscriptions') AS k
    ), done AS (
        SELECT c.data_type, sum(c.n) FILTER (WHERE c.outcome = ANY (c_done)) AS day,
               sum(c.n) FILTER (
                   WHERE c.outcome = ANY (c_done)
                     AND c.hour >= v_hour - interval '1 hour') AS lately,
               sum(c.n) FILTER (
                   WHERE c.outcome <> ALL (c_quiet)
                     AND c.hour >= v_hour - interval '1 hour') AS refused,
               sum(greatest(c.wire_bytes, c.decoded_bytes)) FILTER (
                   WHERE c.outcome = ANY (c_done) AND c.hour >= v_hour - interval '1 hour') AS bytes
        FROM livewell.refresh_count c
        WHERE c.hour > v_now - interval '25 hours' GROUP BY c.data_type
    ), outcomes AS (
        SELECT o.data_type, jsonb_object_agg(o.outcome, o.n) AS n
        FROM (
            SELECT c.data_type, c.outcome, sum(c.n) AS n FROM livewell.refresh_count c
            WHERE c.hour >= v_hour - interval '1 hour' GROUP BY c.data_type, c.outcome) o
        GROUP BY o.data_type
    )
    SELECT coalesce(jsonb_agg(jsonb_build_object(
               'name', t.name, 'upstream', t.upstream,
               'queue', livewell.refresh_queue(t.upstream, t.pool), 'strategy', t.strategy,
               'ttl_seconds', extract(epoch FROM t.ttl)::float8,
               'paused_at', t.paused_at, 'upstream_paused_at', u.paused_at,
               'parked_reason', t.parked_reason, 'applied_at', t.applied_at,
               'keys', coalesce(k.verdicts, '{}'), 'quiet', coalesce(k.quiet, 0),
               'subscriptions', coalesce(w.n, 0),
               'refreshed_day', coalesce(d.day, 0), 'refreshed', coalesce(d.lately, 0),
               'refused', coalesce(d.refused, 0), 'outcomes', coalesce(o.n, '{}'),
               'size_estimate', livewell.expected_size(t.upstream, t.name, t.size_estimate)::float8,
               'size_measured', CASE WHEN d.lately > 0 THEN (d.bytes / d.lately)::float8 END)
               ORDER BY t.name), '[]')
    INTO v_types
    FROM (SELECT * FROM livewell.data_type a ORDER BY a.name LIMIT 1000) t
    JOIN livewell.upstream u ON u.name = t.upstream
    LEFT JOIN keys k ON k.data_type = t.name
    LEFT JOIN watched w ON w.data_type = t.name
    LEFT JOIN done d ON d.data_type = t.name
    LEFT JOIN outcomes o ON o.data_type = t.name;

    RETURN jsonb_build_object(
        'how', v_sample.value ->> 'how', 'sampled_at', v_sample.at,
        'sample_age_seconds', extract(epoch FROM v_now - v_sample.at)::float8,
        'viewers', v_sample.value -> 'viewers', 'sessions', v_sample.value -> 'sessions',
        'subscriptions', (
            SELECT coalesce(sum((k ->> 1)::bigint), 0)
            FROM jsonb_array_elements(v_sample.value -> 'subscriptions') AS k),
        'types', v_types,
        'due', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'upstream', u.name, 'keys', d.n,
                'oldest_seconds', extract(epoch FROM v_now - d.oldest)::float8)
                ORDER BY u.name), '[]')
            FROM (SELECT * FROM livewell.upstream a ORDER BY a.name LIMIT 1000) u
            CROSS JOIN LATERAL (
                SELECT count(*) AS n, min(x.due_at) AS oldest FROM (
                    SELECT l.due_at FROM livewell.ledger l
                    WHERE l.upstream = u.name AND l.due_at <= v_now
                    ORDER BY l.due_at LIMIT 10000) x) d),
        'due_check', (
            SELECT jsonb_build_object(
                'per_minute', coalesce(sum(s.n), 0)::float8 / 5,
                'mean_ms', sum(s.ms)::float8 / nullif(sum(s.n), 0))
            FROM livewell.stat s
            WHERE s.minute > v_now - interval '5 minutes' AND s.queue = v_due_check
              AND s.kind = 'livewell.due_check'));
END
$$;
COMMENT ON FUNCTION livewell.state_refresh IS
    'Viewers, freshness by type, what is due and what became of refreshes, for the system state.';
REVOKE ALL ON FUNCTION livewell.state_refresh FROM PUBLIC;

-- ── refresh/functions/operate/why_key.sql ──
-- Why is this key as fresh, or as stale, as it is? One answer, the first that applies, in the order
-- in which things would have to be overcome (X8).
--
-- Called by: `livewell why`, GET /v1/data/{type}/{key}/why.
-- Index:     data_type_pkey, ledger_pkey, subscription_key_idx.
-- Reasons:
--     unknown_type, bad_key, never_asked
--         there is nothing to be fresh
--     fresh, unverifiable, lagging, missing
--         not stale by its rule: the verdict says what else is to be said
--     parked_type, paused_type, paused_upstream
--         stale, and by somebody's will not refreshed
--     parked_key, failing
--         stale, and not asked for again before retry_at
--     and what why_refresh says of the refresh of a stale key
-- It looks without locks: the answer is about this moment. Runs with the rights of its caller, who
-- must see all viewers and jobs: not for livewell_api.
CREATE OR REPLACE FUNCTION livewell.why_key(p_type text, p_key text)
RETURNS TABLE (
    reason text, verdict text, viewers integer, source_at timestamptz, fetched_at timestamptz,
    checked_at timestamptz, fresh_until timestamptz, failing_since timestamptz, failures integer,
    failure text, error text, retry_at timestamptz, job_id bigint, lane integer, n bigint,
    of_limit bigint, other_id bigint, name text, since timestamptz, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_type      livewell.data_type;
    v_upstream  livewell.upstream;
    v_l         livewell.ledger;
BEGIN
    SELECT d.* INTO v_type FROM livewell.data_type d WHERE d.name = p_type;
    IF NOT FOUND THEN
        reason := 'unknown_type';
        RETURN NEXT;
        RETURN;
    END IF;
    -- A row that is handed to a function is unpacked each time: without what makes it large.
    v_type.definition := NULL;
    v_type.columns := NULL;
    IF NOT livewell.key_fits(v_type.key_pattern, p_key) THEN
        reason := 'bad_key';
        name := v_type.key_pattern;
        RETURN NEXT;
        RETURN;
    END IF;
    viewers := livewell.count_viewers(p_type, p_key);
    SELECT l.* INTO v_l FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = p_key;
    IF NOT FOUND THEN
        reason := 'never_asked';
        verdict := 'missing';
        RETURN NEXT;
        RETURN;
    END IF;
    verdict := livewell.verdict(v_type, v_l, v_now);
    source_at := v_l.source_at;
    fetched_at := v_l.fetched_at;
    checked_at := v_l.checked_at;
    fresh_until := nullif(livewell.stale_at(v_type, v_l), '-infinity');
    failing_since := v_l.failing_since;
    failures := v_l.failures;
    failure := v_l.reason;
    error := v_l.error;
    retry_at := v_l.retry_at;
    IF NOT livewell.is_stale(v_type, v_l, v_now) THEN
        reason := verdict;
        RETURN NEXT;
        RETURN;
    END IF;

    -- Stale. By whose will?
    SELECT u.* INTO v_upstream FROM livewell.upstream u WHERE u.name = v_type.upstream;
    IF v_type.parked_reason IS NOT NULL THEN
        reason := 'parked_type';
        name := v_type.parked_reason;
    ELSIF v_type.paused_at IS NOT NULL THEN
        reason := 'paused_type';
        name := p_type;
        since := v_type.paused_at;
    ELSIF v_upstream.paused_at IS NOT NULL THEN
        reason := 'paused_upstream';
        name := v_upstream.name;
        since := v_upstream.paused_at;
    ELSIF v_l.retry_at > v_now THEN
        reason := CASE livewell.refresh_reasons() -> v_l.reason ->> 'ledger'
            WHEN 'parked_key' THEN 'parked_key' ELSE 'failing' END;
        since := v_l.failing_since;
        wait_seconds := extract(epoch FROM v_l.retry_at - v_now);
    ELSE
        SELECT w.reason, w.job_id, w.lane, w.n, w.of_limit, w.other_id, w.name, w.since,
               w.wait_seconds
        INTO reason, job_id, lane, n, of_limit, other_id, name, since, wait_seconds
        FROM livewell.why_refresh(v_type, v_l, viewers, v_now) AS w;
        -- A job that is delayed because it failed is failing.
        IF reason = 'delayed' AND v_l.failing_since IS NOT NULL THEN
            reason := 'failing';
            retry_at := since;
            since := v_l.failing_since;
        END IF;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.why_key IS
    'Why a key is fresh, or what stands in the way of its refresh: the first thing that does.';
REVOKE ALL ON FUNCTION livewell.why_key FROM PUBLIC;

-- ── refresh/functions/operate/why_refresh.sql ──
-- What the refresh of a stale key waits for: its job, somebody who looks, or the due check.
--
-- Called by: why_key, for a key whose refresh nobody has stopped and that is not backed off.
-- Index:     job_unique_key_idx; ledger_due_idx, a bounded page of it.
-- Reasons:
--     running, delayed, held_key, held_group, paused_queue, no_worker, no_task, no_credential,
--     suspect, queue_limit, concurrency, key_limit, rate, budget, breaker, probe, upstream, behind,
--     next
--         it has a job: what why_job says of that
--     not_watched, scheduled
--         no job, and nobody to make one for: parked until somebody looks, or until the next walk
--     stalled, later, due
--         no job yet: its queue does not move; not looked at before its time; waits its turn among
--         n
--     no_worker, paused_queue, rate, budget, breaker, probe, upstream, behind
--         and without a job too: what keeps the due check from making one
CREATE OR REPLACE FUNCTION livewell.why_refresh(
    p_type livewell.data_type, p_ledger livewell.ledger, p_viewers integer, p_now timestamptz)
RETURNS TABLE (
    reason text, job_id bigint, lane integer, n bigint, of_limit bigint, other_id bigint, name text,
    since timestamptz, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_due_max   CONSTANT integer := 10000;
    v_name      text := p_type."name";
    v_key       text := p_ledger."key";
    v_queue     text := livewell.refresh_queue(p_type.upstream, p_type.pool);
    v_paused    timestamp with time zone;   -- since when its queue is
    v_demanded  boolean;                    -- somebody waits for it by read-through
    v_room      record;
BEGIN
    RETURN QUERY
    SELECT CASE w.reason WHEN 'paused' THEN 'paused_queue' ELSE w.reason END, j.id, j.lane::integer,
           w.n, w.of_limit, w.other_id, w.name, w.since, w.wait_seconds
    FROM livewell.job j CROSS JOIN LATERAL livewell.why_job(j.id) AS w
    WHERE j.queue = v_queue AND j.unique_key = v_name || ':' || v_key
      AND j.held_by IS DISTINCT FROM 'k'
      AND w.reason NOT IN ('succeeded', 'cancelled', 'dead', 'unknown')
    LIMIT 1;
    IF FOUND THEN
        RETURN;
    END IF;

    -- It has none. Is there anybody to make one for?
    v_demanded := coalesce(p_ledger.demanded_at > p_now - interval '1 minute', false)
        AND coalesce(p_ledger.checked_at < p_ledger.demanded_at, true);
    lane := CASE WHEN p_type.strategy = 'scheduled' OR p_viewers = 0 AND NOT v_demanded
        THEN 1 ELSE 0 END;
    IF p_viewers = 0 AND NOT v_demanded
       AND NOT (
           p_type.prefetch AND coalesce(p_ledger.wanted_at > p_now - interval '1 day', false)) THEN
        IF p_type.strategy = 'scheduled' AND EXISTS (
            SELECT FROM livewell.universe u
            WHERE u.data_type = v_name AND u.key = v_key AND u.active) THEN
            reason := 'scheduled';
            since := (
                SELECT s.due_at FROM livewell.schedule s
                WHERE s.name = 'walk.' || p_type.name AND s.open_ended);
        ELSE
            reason := 'not_watched';
        END IF;
        RETURN NEXT;
        RETURN;
    END IF;
    name := v_queue;
    SELECT q.paused_at INTO v_paused FROM livewell.queue q WHERE q.name = v_queue;
    IF v_paused IS NOT NULL THEN
        reason := 'paused_queue';
        since := v_paused;
        RETURN NEXT;
        RETURN;
    END IF;
    IF NOT EXISTS (
        SELECT FROM livewell.worker w
        WHERE livewell.works_queue(w.queues, v_queue) AND w.expires_at > p_now) THEN
        reason := 'no_worker';
        RETURN NEXT;
        RETURN;
    END IF;

    -- There is. What keeps the due check from making one?
    -- What stops the whole upstream comes before what its queue does: jobs that wait for an open
    -- breaker do not move either.
    SELECT r.* INTO v_room FROM livewell.dispatch_room(p_type.upstream, p_now, 1000) AS r;
    IF v_queue = ANY (v_room.stalled)
       AND coalesce(v_room.reason, '') NOT IN ('breaker', 'probe', 'upstream', 'budget') THEN
        reason := 'stalled';
    ELSIF (CASE lane WHEN 0 THEN v_room.calls ELSE v_room.background_calls END) <= 0 THEN
        reason := CASE coalesce(v_room.reason, 'rate') WHEN 'waiting' THEN 'behind'
            ELSE coalesce(v_room.reason, 'rate') END;
        n := CASE reason WHEN 'behind' THEN v_room.waiting END;
        name := CASE reason WHEN 'behind' THEN v_queue ELSE p_type.upstream END;
        wait_seconds := v_room.wait_seconds;
        since := p_now + v_room.wait_seconds * interval '1 second';
    ELSIF p_ledger.due_at > p_now THEN
        reason := 'later';
        since := p_ledger.due_at;
        wait_seconds := extract(epoch FROM p_ledger.due_at - p_now);
    ELSE
        reason := 'due';
        name := p_type.upstream;
        since := coalesce(p_ledger.due_at, p_now);
        SELECT count(*) INTO n FROM (
            SELECT FROM livewell.ledger o WHERE o.upstream = p_type.upstream AND o.due_at <= p_now
            LIMIT c_due_max) o;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.why_refresh IS
    'What the refresh of a stale key waits for: its job, somebody who looks, or the due check.';
REVOKE ALL ON FUNCTION livewell.why_refresh FROM PUBLIC;

-- ── refresh/functions/push/changed_since.sql ──
-- Which keys changed in any way that is shown, since the caller last looked: their names and
-- status_version, nothing else. One row; its lists are in the order of status_at, type, key.
--
-- Called by: the hub (refresh/push/hub.py), at every wake-up. It drops what it knows by
--            status_version and reads what somebody here follows with read_readings.
-- p_cursor:    the `at` of the call before; NULL: now. p_back: seconds before it that are looked at
--              again: status_at is read before the commit, so a slow store becomes visible behind
--              the cursor (T4).
-- p_after_…:   the last of the page before, when that was full; NULL for the first page.
-- If the clock was set back, it is looked at again from there.
-- Index:       ledger_status_idx. Cost grows with what changed lately, not with what exists or is
--              followed.
CREATE OR REPLACE FUNCTION livewell.changed_since(
    p_cursor timestamptz, p_back float8, p_limit integer, p_after_at timestamptz DEFAULT NULL,
    p_after_type text DEFAULT NULL, p_after_key text DEFAULT NULL)
RETURNS TABLE (at timestamptz, types text[], keys text[], versions bigint[], last_at timestamptz)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_since     timestamptz := coalesce(
        p_after_at,
        least(p_cursor, v_now) - least(greatest(p_back, 0), 3600) * interval '1 second');
BEGIN
    RETURN QUERY
    SELECT v_now, coalesce(array_agg(c.data_type), '{}'), coalesce(array_agg(c.key), '{}'),
           coalesce(array_agg(c.status_version), '{}'), max(c.status_at)
    FROM (
        SELECT l.data_type, l.key, l.status_version, l.status_at FROM livewell.ledger l
        WHERE l.status_at >= v_since
          AND (
              p_after_at IS NULL
                  OR (l.status_at, l.data_type, l.key) > (p_after_at, p_after_type, p_after_key))
        ORDER BY l.status_at, l.data_type, l.key LIMIT least(greatest(p_limit, 1), 10000)) c;
END
$$;
COMMENT ON FUNCTION livewell.changed_since IS
    'Keys whose state changed since a cursor, with a look back for late commits; one page.';
REVOKE ALL ON FUNCTION livewell.changed_since FROM PUBLIC;

-- ── refresh/functions/push/read_readings.sql ──
-- What is to be shown of some keys, where it differs from what the caller knows: times, verdict and
-- reason, until when the verdict holds, and the value where that is another one.
--
-- Called by: the hub, for streams, watches and waiting gets; get (with nothing known) on a full
--            disk. One round trip for any number of keys, of any number of types.
-- p_known:     status_version, p_verdicts: verdict, p_versions: version of the value; -1 and NULL:
--              nothing is known. A verdict also changes by the mere passing of time.
-- A key that nobody ever asked for is missing, with status_version 0.
-- turns_at:    the next instant at which the verdict may change by itself, and turns_seconds how
--              far away that is on this clock; NULL: it will not. age_seconds: since the last
--              check. Seconds beside instants, because clients count on clocks of their own, which
--              may be wrong by hours (R22).
-- Index:       ledger_pkey; then read_values, once per type.
CREATE OR REPLACE FUNCTION livewell.read_readings(
    p_types text[], p_keys text[], p_known bigint[], p_verdicts text[], p_versions bigint[])
RETURNS TABLE (
    data_type text, key text, verdict text, source_at timestamptz, fetched_at timestamptz,
    checked_at timestamptz, version bigint, status_version bigint, reason text, error text,
    value jsonb, turns_at timestamptz, turns_seconds float8, age_seconds float8)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz := livewell.now();
    v_type      livewell.data_type;
BEGIN
    FOR v_type IN SELECT d.* FROM livewell.data_type d
    WHERE d.name = ANY (p_types) ORDER BY d.name LOOP
        -- A row that is handed to a function is unpacked each time: without what makes it large.
        v_type.definition := NULL;
        v_type.columns := NULL;
        RETURN QUERY
        WITH asked AS (
            SELECT a.key, a.known, a.shown, a.version
            FROM unnest(
                p_types, p_keys, p_known, p_verdicts, p_versions)
                AS a (name, key, known, shown, version)
            WHERE a.name = v_type.name
        ), changed AS MATERIALIZED (
            SELECT a.key, l.ledger, coalesce((l.ledger).status_version, 0) AS status_version,
                   coalesce((l.ledger).version, 0) AS version, j.verdict, a.version AS had
            FROM asked a
            -- See subscribe.
            LEFT JOIN LATERAL (
                SELECT x AS ledger FROM livewell.ledger x
                WHERE x.data_type = v_type.name AND x.key = a.key OFFSET 0) l ON true
            CROSS JOIN LATERAL (
                SELECT
                    CASE
                        WHEN (l.ledger).key IS NULL THEN 'missing'
                        ELSE livewell.verdict(v_type, l.ledger, v_now)
                    END AS verdict) j
            WHERE coalesce((l.ledger).status_version, 0) <> coalesce(a.known, -1)
              OR j.verdict IS DISTINCT FROM a.shown
        ), wanted AS (
            SELECT array_agg(c.key) AS keys FROM changed c
            WHERE c.version > 0 AND c.version <> coalesce(c.had, -1)
        ), read AS MATERIALIZED (
            SELECT r.key, r.value FROM wanted w, livewell.read_values(v_type.name, w.keys) AS r
            WHERE w.keys IS NOT NULL
        )
        SELECT v_type.name, c.key, c.verdict, (c.ledger).source_at, (c.ledger).fetched_at,
               (c.ledger).checked_at, c.version, c.status_version, (c.ledger).reason,
               (c.ledger).error, r.value,
               t.at, extract(epoch FROM t.at - v_now)::float8,
               extract(epoch FROM v_now - (c.ledger).checked_at)::float8
        FROM changed c
        LEFT JOIN read r ON r.key = c.key
        CROSS JOIN LATERAL (
            SELECT
                CASE
                    WHEN (c.ledger).key IS NOT NULL
                        THEN livewell.verdict_turns_at(v_type, c.ledger, v_now)
                END AS at) t;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.read_readings IS
    'Readings of keys that differ from what the caller knows: verdict and until when it holds, '
    'times, reason, and the value if it is another one.';
REVOKE ALL ON FUNCTION livewell.read_readings FROM PUBLIC;

-- ── refresh/functions/push/read_values.sql ──
-- The stored values of some keys: an object for types of one row, a list in the order of the row
-- key for others. Keys without a value are left out.
--
-- Called by: read_readings, read_through; get, watch and the hub. Index: the primary key of the
--            type's table.
-- A series keeps growing: of a longer one the last p_rows_max rows are given.
CREATE OR REPLACE FUNCTION livewell.read_values(
    p_type text, p_keys text[], p_rows_max integer DEFAULT 10000)
RETURNS TABLE (key text, value jsonb)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_name      pg_catalog.text := v_type."name";
    v_order     pg_catalog.text;
BEGIN
    IF v_type.rows_kind = 'one' THEN
        RETURN QUERY EXECUTE format(
            'SELECT t.key, to_jsonb(t) - ''key'' FROM livewell_data.%I t WHERE t.key = ANY ($1) '
            'ORDER BY t.key',
                v_name)
        USING p_keys;
        RETURN;
    END IF;
    SELECT string_agg(
        format('%I', e.value ->> 'name'), ', ' ORDER BY e.ordinality)
        FILTER (WHERE (e.value ->> 'key')::boolean)
    INTO v_order
    FROM jsonb_array_elements(v_type.columns) WITH ORDINALITY AS e (value, ordinality);
    RETURN QUERY EXECUTE format(
        'SELECT k.key, v.rows FROM (SELECT DISTINCT u.key FROM unnest($1) AS u (key)) AS k CROSS '
        'JOIN LATERAL (SELECT jsonb_agg(to_jsonb(r) - ''key'' ORDER BY %2$s) AS rows '
        'FROM (SELECT * FROM livewell_data.%1$I t WHERE t.key = k.key ORDER BY %3$s LIMIT $2) AS '
        'r) AS v WHERE v.rows IS NOT NULL ORDER BY k.key',
        v_name, v_order,
        (
            SELECT string_agg(
                format('%I DESC', e.value ->> 'name'), ', ' ORDER BY e.ordinality)
                FILTER (WHERE (e.value ->> 'key')::boolean)
                               FROM jsonb_array_elements(v_type.columns) WITH ORDINALITY AS e (
                                   value, ordinality)))
    USING p_keys, p_rows_max;
END
$$;
COMMENT ON FUNCTION livewell.read_values IS 'The stored values of some keys of a type.';
REVOKE ALL ON FUNCTION livewell.read_values FROM PUBLIC;

-- ── refresh/functions/push/verdict_turns_at.sql ──
-- The next instant at which the verdict on a value may be another one although nothing is stored;
-- NULL when time alone changes nothing. Never later than the truth, now and then earlier.
--
-- Called by: read_key; read_readings, so that whoever shows a value knows when to look again.
-- Every instant that stale_at, is_stale and verdict compare p_now with: the end of the time to
-- live; five seconds before a check that lies in the future; the source's own time +
-- max_source_age, and, for the rule session, the next opening and close, and what is left of
-- max_source_age after an opening. A candidate too many costs one look, a missing one a verdict
-- that is wrong for a minute.
-- Index:     exchange_session_pkey, a few probes, for the rule session only.
CREATE OR REPLACE FUNCTION livewell.verdict_turns_at(
    p_type livewell.data_type, p_ledger livewell.ledger, p_now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_lags      timestamp with time zone := p_ledger.source_at
        + extract(epoch FROM p_type.max_source_age) * interval '1 second';
    v_open      timestamp with time zone;       -- the session that began last
    v_close     timestamp with time zone;
    v_before    timestamp with time zone;       -- the close before it
    v_next      timestamp with time zone;       -- the next opening
BEGIN
    IF p_type.rule = 'session' THEN
        SELECT s.opens_at, s.closes_at INTO v_open, v_close FROM livewell.exchange_session s
        WHERE s.calendar = p_type.calendar AND s.opens_at <= p_now ORDER BY s.opens_at DESC LIMIT 1;
        SELECT s.closes_at INTO v_before FROM livewell.exchange_session s
        WHERE s.calendar = p_type.calendar AND s.opens_at < v_open ORDER BY s.opens_at DESC LIMIT 1;
        SELECT s.opens_at INTO v_next FROM livewell.exchange_session s
        WHERE s.calendar = p_type.calendar AND s.opens_at > p_now ORDER BY s.opens_at LIMIT 1;
    END IF;
    RETURN (
        SELECT min(c.at)
        FROM unnest(ARRAY[
            livewell.stale_at(p_type, p_ledger), p_ledger.checked_at - 5 * interval '1 second',
            v_lags, v_next, v_close,
            v_lags + (v_open - v_before),
            v_open + extract(epoch FROM p_type.max_source_age) * interval '1 second'
        ]) AS c (at)
        WHERE c.at > p_now AND c.at < 'infinity');
END
$$;
COMMENT ON FUNCTION livewell.verdict_turns_at IS
    'When the verdict on a value may next change by the mere passing of time; NULL: never.';
REVOKE ALL ON FUNCTION livewell.verdict_turns_at FROM PUBLIC;

-- ── refresh/functions/read/is_stale.sql ──
-- Whether a value is stale by its rule at this instant. No value is stale.
--
-- Called by: judge_keys, ready_keys, refresh_wanted, rule_type_silent, why_key; subscribe, get;
--            whoever asks "is a refresh wanted?". verdict says more.
-- A check in the future: the clock was set back since. Nobody knows how old the value is, so it is
-- stale (fail safe, F-C3). Five seconds, because p_now may have been read a moment before the row.
CREATE OR REPLACE FUNCTION livewell.is_stale(
    p_type livewell.data_type, p_ledger livewell.ledger, p_now timestamptz)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN livewell.stale_at(p_type, p_ledger) <= p_now
        OR coalesce(p_ledger.checked_at > p_now + 5 * interval '1 second', false);
END
$$;
COMMENT ON FUNCTION livewell.is_stale IS
    'Whether a value is stale by its rule at p_now; no value counts as stale.';
REVOKE ALL ON FUNCTION livewell.is_stale FROM PUBLIC;

-- ── refresh/functions/read/judge_by_type.sql ──
-- As judge_keys, one type at a time: a type whose rule cannot be computed counts as stale, leaves a
-- warning, and changes nothing for the others (contract 4).
--
-- Called by: subscribe, when judge_keys fails for all types together. Index: ledger_pkey.
CREATE OR REPLACE FUNCTION livewell.judge_by_type(
    p_types text[], p_keys text[], p_answers text[], p_now timestamptz)
RETURNS TABLE (
    data_type text, key text, answer text, verdict text, wanted boolean, version bigint,
    status_version bigint, source_at timestamptz, fetched_at timestamptz, checked_at timestamptz,
    age_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_type  pg_catalog.text;
BEGIN
    FOR v_type IN SELECT DISTINCT n FROM unnest(p_types) AS n LOOP
        <<alone>>
        BEGIN
            RETURN QUERY
            SELECT j.* FROM livewell.judge_keys(p_types, p_keys, p_answers, p_now, v_type) AS j;
        EXCEPTION WHEN others THEN
            PERFORM livewell.warn(
                'refresh.check', v_type || ': a check failed and counted as stale', SQLERRM);
            RETURN QUERY
            SELECT g.type, g.key, g.answer, 'stale', g.answer = 'subscribed', l.version,
                   l.status_version, l.source_at, l.fetched_at, l.checked_at, NULL::double precision
            FROM unnest(p_types, p_keys, p_answers)
                 WITH ORDINALITY AS g (type, key, answer, place)
            LEFT JOIN livewell.ledger l ON l.data_type = g.type AND l.key = g.key
            WHERE g.type = v_type ORDER BY g.place;
        END alone;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.judge_by_type IS
    'How fresh keys are, one type at a time: a broken type counts as stale.';
REVOKE ALL ON FUNCTION livewell.judge_by_type FROM PUBLIC;

-- ── refresh/functions/read/judge_keys.sql ──
-- How fresh each of these pairs is, in the order given; p_only: only those of one type.
--
-- Called by: judge_by_type; subscribe alone, whose planner settings hold here too (to set them
--            again takes 45 µs), for all types at once, and type by type if that fails. Index:
--            ledger_pkey, data_type_pkey.
CREATE OR REPLACE FUNCTION livewell.judge_keys(
    p_types text[], p_keys text[], p_answers text[], p_now timestamptz, p_only text DEFAULT NULL)
RETURNS TABLE (
    data_type text, key text, answer text, verdict text, wanted boolean, version bigint,
    status_version bigint, source_at timestamptz, fetched_at timestamptz, checked_at timestamptz,
    age_seconds float8)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH rules AS MATERIALIZED (
        -- Without what makes it large, once per type: a row that is handed to a function is
        -- unpacked each time (1 ms of a shipped type).
        SELECT jsonb_populate_record(d, '{"definition": {}, "columns": []}') AS rule, d.name
        FROM livewell.data_type d
        WHERE d.name = ANY (p_types)
    )
    SELECT g.type, g.key, g.answer,
           CASE WHEN t.name IS NULL THEN 'stale' ELSE livewell.verdict(t.rule, l.ledger, p_now) END,
           g.answer = 'subscribed' AND t.name IS NOT NULL
               AND livewell.is_stale(t.rule, l.ledger, p_now)
               AND coalesce((l.ledger).retry_at <= p_now, true),
           (l.ledger).version, (l.ledger).status_version, (l.ledger).source_at,
           (l.ledger).fetched_at, (l.ledger).checked_at,
           extract(epoch FROM p_now - (l.ledger).checked_at)::double precision
    FROM unnest(p_types, p_keys, p_answers) WITH ORDINALITY AS g (type, key, answer, place)
    -- See subscribe.
    LEFT JOIN rules t ON t.name = g.type
    LEFT JOIN LATERAL (
        SELECT x AS ledger FROM livewell.ledger x
        WHERE x.data_type = g.type AND x.key = g.key OFFSET 0) l ON true
    WHERE p_only IS NULL OR g.type = p_only
    ORDER BY g.place;
END
$$;
COMMENT ON FUNCTION livewell.judge_keys IS 'Verdict, ages and versions of many keys.';
REVOKE ALL ON FUNCTION livewell.judge_keys FROM PUBLIC;

-- ── refresh/functions/read/read_key.sql ──
-- Read one key as read_through does, and say until when its verdict holds. One round trip (X5,
-- R22).
--
-- Called by: app.get, and other clients that read without watching.
-- turns_at:    the next instant at which the verdict may change by itself, and turns_seconds how
--              far away that is on this clock; NULL: it will not. age_seconds: since the last
--              check.
-- throttled:   for a demand that cannot be served now, why: budget, breaker, upstream (it asked for
--              silence), probe, backed_off, paused, parked; retry_at: when to ask again, NULL if
--              nobody knows (X5, R11).
-- The clock is read before the verdict is judged, and the row after it: an instant between the two
-- is not overlooked, and of a row that has changed meanwhile it is said that the verdict turns now.
-- Why SECURITY DEFINER: livewell_api has no table rights.
-- Index:       ledger_pkey, once more.
CREATE OR REPLACE FUNCTION livewell.read_key(
    p_type text, p_key text, p_max_age float8 DEFAULT NULL, p_user text DEFAULT NULL,
    p_cold_max integer DEFAULT 20)
RETURNS TABLE (
    demand text, queue text, verdict text, source_at timestamptz, fetched_at timestamptz,
    checked_at timestamptz, version bigint, status_version bigint, reason text, error text,
    value jsonb,
    turns_at timestamptz, turns_seconds float8, age_seconds float8, throttled text,
    retry_at timestamptz, retry_seconds float8)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_type      livewell.data_type;
    v_l         livewell.ledger;
BEGIN
    SELECT r.demand, r.queue, r.verdict, r.source_at, r.fetched_at, r.checked_at, r.version,
           r.status_version, r.reason, r.error, r.value
    INTO demand, queue, verdict, source_at, fetched_at, checked_at, version, status_version, reason,
         error, value
    FROM livewell.read_through(p_type, p_key, p_max_age, p_user, p_cold_max) AS r;
    SELECT l.* INTO v_l FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = p_key;
    IF FOUND AND verdict IS NOT NULL THEN
        SELECT d.* INTO v_type FROM livewell.data_type d WHERE d.name = p_type;
        -- A row that is handed to a function is unpacked each time: without what makes it large.
        v_type.definition := NULL;
        v_type.columns := NULL;
        turns_at :=
            CASE
                WHEN v_l.status_version = status_version
                    THEN livewell.verdict_turns_at(v_type, v_l, v_now)
                ELSE v_now END;
        turns_seconds := extract(epoch FROM turns_at - v_now);
        age_seconds := extract(epoch FROM v_now - checked_at);
    END IF;
    IF demand IN ('throttled', 'backed_off', 'paused', 'parked') THEN
        throttled := demand;
        retry_at := CASE demand WHEN 'backed_off' THEN v_l.retry_at END;
        IF demand = 'throttled' THEN
            -- Opened again since: ask again soon.
            SELECT coalesce(h.reason, 'probe'), coalesce(h.retry_at, v_now + interval '1 second')
            INTO throttled, retry_at
            FROM livewell.data_type d
            CROSS JOIN LATERAL livewell.read_throttle(
                d.upstream, d.name, d.size_estimate, v_now) AS h
            WHERE d.name = p_type;
        END IF;
        retry_seconds := extract(epoch FROM retry_at - v_now);
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.read_key IS
    'Reads a key with its verdict and until when that holds, and demands a refresh if it is not '
    'fresh enough; says what became of the demand.';
REVOKE ALL ON FUNCTION livewell.read_key FROM PUBLIC;

-- ── refresh/functions/read/read_throttle.sql ──
-- Why a key of this type cannot be refreshed now, whoever asks, and when it is worth asking again:
-- budget, breaker, upstream (it asked for silence), probe (one call is trying whether it is back).
--
-- Called by: refuse_demand, before a key is demanded; read_key, to say it. Both run as the owner.
-- A rate that is used up is no reason here: the key is served in its turn, within seconds. One row,
-- NULLs: nothing stands in the way. Index: as dispatch_room.
CREATE OR REPLACE FUNCTION livewell.read_throttle(
    p_upstream text, p_type text, p_stated bigint, p_now timestamptz)
RETURNS TABLE (reason text, retry_at timestamptz)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_room      record;
    v_by_call   boolean := coalesce(
        (SELECT l.budget_unit = 'calls' FROM livewell.limiter l WHERE l.name = p_upstream), false);
BEGIN
    SELECT * INTO v_room FROM livewell.dispatch_room(p_upstream, p_now, 1000);
    reason :=
        CASE
            WHEN v_room.units <
                CASE
                    WHEN v_by_call THEN 1
                    ELSE livewell.expected_size(p_upstream, p_type, p_stated)
                END
                THEN 'budget'
                   WHEN v_room.calls = 0
                       AND v_room.reason IN ('breaker', 'upstream', 'probe', 'budget')
                           THEN v_room.reason END;
    IF reason IS NOT NULL THEN
        retry_at := p_now + least(greatest(coalesce(v_room.wait_seconds, 5), 1), 31 * 86400)
            * interval '1 second';
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.read_throttle IS
    'Why a key of a type cannot be refreshed now, and when to ask again; NULLs if it can.';
REVOKE ALL ON FUNCTION livewell.read_throttle FROM PUBLIC;

-- ── refresh/functions/read/read_through.sql ──
-- Read one key; if what is there is not fresh enough, demand a refresh. One round trip (X5).
--
-- Called by: read_key; app.get, and other clients that read without watching.
-- p_max_age:   seconds since the last check that are fresh enough; NULL: whatever the type's own
--              rule says is not stale.
-- p_user:      whose cold-key budget a key counts for that nobody ever asked for; NULL: somebody
--              trusted. p_cold_max: so many of them a minute.
-- demand:      none (fresh enough, or not asked to), queued, waiting (somebody's refresh is on its
--              way), due (dispatch will come to it), missing (the upstream has said so, and is
--              believed), backed_off (it failed; not before retry_at, whoever asks), throttled
--              (budget, breaker or silence: nothing is queued or written; read_key says which, and
--              until when), parked (not in the plan), paused, cold_budget, bad_key, unknown_type.
-- Steps:       refresh_wanted (is it fresh enough?), refuse_demand (may it be demanded now?),
--              demand_refresh.
-- Strangers cannot spend the quota: the pattern is checked before anything is written, a known
-- failure or absence is answered without a call, unknown keys have a budget per user, and a key has
-- one job, however many ask.
-- Why SECURITY DEFINER: livewell_api has no table rights; of a user it touches the budget alone.
-- Locks: the user's row, then the ledger row (demand_refresh). A crowd of readers of one key that
-- is on its way takes no lock at all.
CREATE OR REPLACE FUNCTION livewell.read_through(
    p_type text, p_key text, p_max_age float8 DEFAULT NULL, p_user text DEFAULT NULL,
    p_cold_max integer DEFAULT 20, p_demand boolean DEFAULT true)
RETURNS TABLE (
    demand text, queue text, verdict text, source_at timestamptz, fetched_at timestamptz,
    checked_at timestamptz, version bigint, status_version bigint, reason text, error text,
    value jsonb)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now       pg_catalog.timestamptz := livewell.now();
    v_type      livewell.data_type;
    v_l         livewell.ledger;
    v_queue     pg_catalog.text;
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', coalesce(p_user, ''), true);
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION
            'values are read with their verdict on the primary only; this server is a replica'
        USING ERRCODE = 'LW001';
    END IF;
    SELECT d.* INTO v_type FROM livewell.data_type d WHERE d.name = p_type;
    IF NOT FOUND THEN
        demand := 'unknown_type';
        RETURN NEXT;
        RETURN;
    END IF;
    -- A row that is handed to a function is unpacked each time: without what makes it large.
    v_type.definition := NULL;
    v_type.columns := NULL;
    IF NOT livewell.key_fits(v_type.key_pattern, p_key) THEN
        demand := 'bad_key';
        RETURN NEXT;
        RETURN;
    END IF;
    v_queue := livewell.refresh_queue(v_type.upstream, v_type.pool);
    queue := v_queue;
    SELECT l.* INTO v_l FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = p_key;
    demand := livewell.refresh_wanted(v_type, v_l, p_max_age, v_now);

    IF demand = 'wanted' AND NOT p_demand THEN
        demand := 'none';
    ELSIF demand = 'wanted' AND v_l.demanded_at > v_now - interval '2 minutes'
          AND EXISTS (
              SELECT FROM livewell.job j
              WHERE j.queue = v_queue AND j.unique_key = p_type || ':' || p_key
                AND j.state = 'running') THEN
        demand := 'waiting';
    ELSIF demand = 'wanted' THEN
        demand := livewell.refuse_demand(v_type, v_l, p_key, v_queue, p_user, p_cold_max, v_now);
        IF demand IS NULL THEN
            demand := livewell.demand_refresh(v_type, p_key, p_max_age);
            -- Whoever was here before us may have stored it, or failed, while we waited for the
            -- row.
            SELECT l.* INTO v_l FROM livewell.ledger l WHERE l.data_type = p_type AND l.key = p_key;
        END IF;
    END IF;

    verdict :=
        CASE WHEN v_l.key IS NULL THEN 'missing' ELSE livewell.verdict(v_type, v_l, v_now) END;
    source_at := v_l.source_at;
    fetched_at := v_l.fetched_at;
    checked_at := v_l.checked_at;
    version := coalesce(v_l.version, 0);
    status_version := coalesce(v_l.status_version, 0);
    reason := v_l.reason;
    error := v_l.error;
    IF version > 0 THEN
        SELECT r.value INTO value FROM livewell.read_values(p_type, ARRAY[p_key]) AS r;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.read_through IS
    'Reads a key with its verdict, and demands a refresh if it is not fresh enough; says what '
    'became of the demand.';
REVOKE ALL ON FUNCTION livewell.read_through FROM PUBLIC;

-- ── refresh/functions/read/refuse_demand.sql ──
-- Why a refresh of a key that is wanted is not demanded now: parked, paused, throttled, waiting (a
-- job is on its way), cold_budget. NULL: it may be demanded.
--
-- Called by: read_through, which explains these words, as the owner. p_ledger: the key's row; all
--            NULL if nobody ever asked for it, and then it is counted against the user's budget.
-- Index:     job_unique_key_idx; see read_throttle.
CREATE OR REPLACE FUNCTION livewell.refuse_demand(
    p_type livewell.data_type, p_ledger livewell.ledger, p_key text, p_queue text, p_user text,
    p_cold_max integer, p_now timestamptz)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF p_type.parked_reason IS NOT NULL THEN
        RETURN 'parked';
    ELSIF p_type.paused_at IS NOT NULL
          OR EXISTS (
              SELECT FROM livewell.upstream u
              WHERE u.name = p_type.upstream AND u.paused_at IS NOT NULL) THEN
        RETURN 'paused';
    ELSIF (
        SELECT h.reason IS NOT NULL
        FROM livewell.read_throttle(
            p_type.upstream, p_type.name, p_type.size_estimate, p_now) AS h) THEN
        -- Also where a job waits already: it does not come before the others.
        RETURN 'throttled';
    ELSIF p_ledger.demanded_at > p_now - interval '2 minutes'
          AND EXISTS (
              SELECT FROM livewell.job j
              WHERE j.queue = p_queue AND j.unique_key = p_type.name || ':' || p_key) THEN
        RETURN 'waiting';
    ELSIF p_ledger.key IS NULL AND p_user IS NOT NULL
          AND NOT livewell.spend_cold_read(p_user, p_cold_max) THEN
        RETURN 'cold_budget';
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION livewell.refuse_demand IS
    'Why a refresh that is wanted cannot be demanded now; NULL if it can.';
REVOKE ALL ON FUNCTION livewell.refuse_demand FROM PUBLIC;

-- ── refresh/functions/read/stale_at.sql ──
-- The instant at which a value is stale by its rule; -infinity when there is none.
--
-- Called by: many functions; next_due, is_stale, verdict. A pure function of the two rows and the
--            calendar: nothing is flagged, nothing has a default (R5, contract 13).
-- Index:     exchange_session_pkey, two probes, for the rule session only.
-- age:         checked_at + time to live (the key's own, or the type's). For "there is no such
--              key": checked_at + negative_ttl.
-- after_event: the same, but at the event if the last check was before it.
-- session:     a value that was checked after a close is final until the next opening, and then as
--              old as it is; any other: age. "After the close" means that the source says so
--              itself, or that it was asked max_source_age after the close: a source that runs 15
--              minutes late still gives a price from before the close at 16:05, and that is not
--              Friday's close. Beyond the end of the stored calendar: age, which asks too often
--              rather than too seldom.
-- Durations are added as seconds: a day has 24 hours whatever the time zone of the session that
-- asks.
CREATE OR REPLACE FUNCTION livewell.stale_at(p_type livewell.data_type, p_ledger livewell.ledger)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_ttl       double precision := extract(epoch FROM coalesce(p_ledger.ttl_override, p_type.ttl));
    v_checked   timestamp with time zone := coalesce(p_ledger.checked_at, p_ledger.fetched_at);
    v_stale     timestamp with time zone;
    v_close     timestamp with time zone;
    v_open      timestamp with time zone;
BEGIN
    IF v_ttl IS NULL OR v_ttl <= 0 THEN
        RAISE EXCEPTION 'a time to live of %: it must be more than nothing, for type %',
            coalesce(p_ledger.ttl_override, p_type.ttl), p_type.name
        USING ERRCODE = 'LW020';
    END IF;
    IF p_ledger.missing THEN
        RETURN coalesce(
            v_checked + extract(epoch FROM p_type.negative_ttl) * interval '1 second', '-infinity');
    END IF;
    IF p_ledger.fetched_at IS NULL THEN
        RETURN '-infinity';
    END IF;
    v_stale := v_checked + v_ttl * interval '1 second';
    IF p_type.rule = 'after_event' AND v_checked < p_ledger.event_at THEN
        RETURN least(v_stale, p_ledger.event_at);
    END IF;
    IF p_type.rule = 'session' THEN
        SELECT s.closes_at
        INTO v_close FROM livewell.exchange_session s
        WHERE s.calendar = p_type.calendar AND s.opens_at <= v_checked ORDER BY s.opens_at DESC
        LIMIT 1;
        IF v_close <= v_checked
           AND (
               p_ledger.source_at >= v_close
                   OR v_checked >= v_close + coalesce(extract(epoch FROM p_type.max_source_age), 0)
                       * interval '1 second') THEN
            SELECT s.opens_at
            INTO v_open FROM livewell.exchange_session s
            WHERE s.calendar = p_type.calendar AND s.opens_at > v_checked ORDER BY s.opens_at
            LIMIT 1;
            RETURN greatest(v_stale, v_open);
        END IF;
    END IF;
    RETURN v_stale;
END
$$;
COMMENT ON FUNCTION livewell.stale_at IS
    'When a value goes stale by its rule; -infinity when there is no value. Raises when the time '
    'to live is not positive.';
REVOKE ALL ON FUNCTION livewell.stale_at FROM PUBLIC;

-- ── refresh/functions/read/verdict.sql ──
-- What may be said of a value at this instant: missing, failing, stale, lagging, unverifiable or
-- fresh, in this order (X1).
--
-- Called by: judge_keys, read_readings, read_through, rule_watched_not_fresh, sample_refresh,
--            why_key; everything that shows a value. Computed from stored times, never stored
--            itself (R5). Not on a replica, which may be behind without knowing (R28).
-- missing:      the upstream says there is no such key, and that is still believed; or there is no
--               value and nothing has failed.
-- failing:      the last attempt failed (failing_since or failures say so), and the value is stale
--               or there is none. A value that is not stale by its rule keeps its verdict while
--               retries fail.
-- lagging:      the source's own time is older than max_source_age. For the rule session that is
--               measured in trading time: outside a session at the last close, and just after the
--               opening what is left of max_source_age counts from the close before. A source that
--               says Friday 16:00 is lagging on Monday at 10:30, not on Sunday (failure stories 6
--               and 7).
-- unverifiable: the source gives no time of its own, so nobody can tell how old it is.
CREATE OR REPLACE FUNCTION livewell.verdict(
    p_type livewell.data_type, p_ledger livewell.ledger, p_now timestamptz)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_stale     boolean;
    v_failing   boolean := coalesce(p_ledger.failures, 0) > 0 OR p_ledger.failing_since IS NOT NULL;
    v_oldest    timestamp with time zone;
    v_open      timestamp with time zone;
    v_close     timestamp with time zone;
    v_before    timestamp with time zone;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION
            'how fresh a value is, is judged on the primary only; this server is a replica'
        USING ERRCODE = 'LW001';
    END IF;
    v_stale := livewell.is_stale(p_type, p_ledger, p_now);
    IF p_ledger.missing AND NOT v_stale THEN
        RETURN 'missing';
    END IF;
    IF v_stale THEN
        RETURN
            CASE
                WHEN v_failing THEN 'failing'
                WHEN p_ledger.fetched_at IS NULL THEN 'missing'
                ELSE 'stale' END;
    END IF;
    IF NOT p_type.has_source_time OR p_ledger.source_at IS NULL THEN
        RETURN 'unverifiable';
    END IF;
    IF p_type.max_source_age IS NOT NULL THEN
        v_oldest := p_now - extract(epoch FROM p_type.max_source_age) * interval '1 second';
        IF p_type.rule = 'session' AND p_ledger.source_at < v_oldest THEN
            SELECT s.opens_at, s.closes_at INTO v_open, v_close FROM livewell.exchange_session s
            WHERE s.calendar = p_type.calendar AND s.opens_at <= p_now ORDER BY s.opens_at DESC
            LIMIT 1;
            IF v_close <= p_now THEN
                -- Only inside the stored calendar: after its end the last close is long ago, and
                -- nothing would ever lag.
                IF EXISTS (
                    SELECT FROM livewell.exchange_session s
                    WHERE s.calendar = p_type.calendar AND s.opens_at > p_now) THEN
                    v_oldest := v_oldest - (p_now - v_close);
                END IF;
            ELSIF v_open > v_oldest THEN
                SELECT s.closes_at INTO v_before FROM livewell.exchange_session s
                WHERE s.calendar = p_type.calendar AND s.opens_at < v_open ORDER BY s.opens_at DESC
                LIMIT 1;
                v_oldest := coalesce(v_oldest - (v_open - v_before), v_oldest);
            END IF;
        END IF;
        IF p_ledger.source_at < v_oldest THEN
            RETURN 'lagging';
        END IF;
    END IF;
    RETURN 'fresh';
END
$$;
COMMENT ON FUNCTION livewell.verdict IS
    'missing, failing, stale, lagging, unverifiable or fresh, at p_now.';
REVOKE ALL ON FUNCTION livewell.verdict FROM PUBLIC;

-- ── refresh/functions/registry/add_universe.sql ──
-- Put keys into the universe of a scheduled type, or make them active again (R19). Answers how many
-- that were; keys that do not fit are refused, and then none is added.
--
-- Called by: `livewell types universe add` and import, the API; at most 10,000 keys a call.
CREATE OR REPLACE FUNCTION livewell.add_universe(p_type text, p_keys text[])
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_bad       text;
    v_n         integer;
    v_now       timestamptz;
BEGIN
    IF cardinality(p_keys) > 10000 THEN
        RAISE EXCEPTION '% keys in one call: at most 10000 are allowed', cardinality(p_keys)
        USING ERRCODE = 'LW003';
    END IF;
    SELECT k
    INTO v_bad FROM unnest(p_keys) AS k
    WHERE livewell.key_fits(v_type.key_pattern, k) IS NOT TRUE LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'key "%" does not fit % of type %', left(v_bad, 60), v_type.key_pattern,
            p_type
        USING ERRCODE = 'LW003';
    END IF;
    v_now := livewell.now();
    INSERT INTO livewell.universe AS u (data_type, key, added_at)
    SELECT v_type.name, k, v_now FROM (SELECT DISTINCT unnest(p_keys) AS k) AS given
    ORDER BY k COLLATE "C"
    ON CONFLICT (data_type, key) DO UPDATE SET active = true WHERE NOT u.active;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.add_universe IS 'Adds keys to what a scheduled type walks through.';
REVOKE ALL ON FUNCTION livewell.add_universe FROM PUBLIC;

-- ── refresh/functions/registry/apply_type.sql ──
-- Put a type into the registry, or bring it up to date: the row, its table and its queue in one
-- transaction (R1, contract 22).
--
-- Called by: `livewell types apply`, as the owner; nobody else may. p_row has the columns of
--            livewell.data_type.
-- Answer:    refused, with the SQL a person would have to run and nothing done, when the table
--            would need more than additions; otherwise created, changed or unchanged, with the SQL
--            that was run.
-- Steps:     compare_table, run what it adds, declare_queue, insert_type or update_type.
-- Nobody is kept waiting: a lock that is not there within 100 ms fails the call, and the caller
-- tries again (contract 16). The version grows only if something has changed.
CREATE OR REPLACE FUNCTION livewell.apply_type(p_row jsonb)
RETURNS TABLE (outcome text, version bigint, reasons text[], statements text[])
LANGUAGE plpgsql
SET search_path = ''
SET lock_timeout = '100ms'
AS $$
DECLARE
    v_wanted    livewell.data_type := jsonb_populate_record(NULL::livewell.data_type, p_row);
    v_is        livewell.data_type;
    v_now       timestamptz;
    v_role      text := current_setting('role');
    v_reasons   text[];
    v_run       text[];
    v_refused   text[];
    v_statement text;
BEGIN
    -- Whoever may, acts as the owner, so that the owner owns what is made; at the end he is himself
    -- again.
    PERFORM set_config(
        'role',
        (
            SELECT r.rolname FROM pg_catalog.pg_namespace n
            JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
            WHERE n.nspname = 'livewell_data'),
        true);
    <<work>>
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended('livewell.registry', 0));
        SELECT * INTO v_is FROM livewell.data_type t WHERE t.name = v_wanted.name FOR UPDATE;
        v_now := livewell.now();
        IF NOT EXISTS (SELECT FROM livewell.upstream u WHERE u.name = v_wanted.upstream) THEN
            RAISE EXCEPTION 'upstream "%" is not in the registry; apply its file first',
                v_wanted.upstream
            USING ERRCODE = 'LW022';
        END IF;
        SELECT array_agg(c.what), coalesce(array_agg(c.statement) FILTER (WHERE c.additive), '{}'),
               coalesce(array_agg(c.statement) FILTER (WHERE NOT c.additive), '{}')
        INTO v_reasons, v_run, v_refused
        FROM livewell.compare_table(v_wanted.name, v_wanted.columns) AS c;
        IF v_is.upstream <> v_wanted.upstream THEN
            v_reasons := v_reasons || format(
                'its upstream is "%s" in the registry and "%s" in the file',
                v_is.upstream, v_wanted.upstream);
            v_refused := v_refused || format(
                'UPDATE livewell.data_type SET upstream = %1$L WHERE name = %2$L;'
                ' UPDATE livewell.ledger SET upstream = %1$L WHERE data_type = %2$L;',
                v_wanted.upstream, v_wanted.name);
        END IF;
        IF cardinality(v_refused) > 0 THEN
            RETURN QUERY SELECT 'refused', v_is.version, v_reasons, v_run || v_refused;
            EXIT work;
        END IF;
        FOREACH v_statement IN ARRAY v_run LOOP
            EXECUTE v_statement;
        END LOOP;
        PERFORM livewell.declare_queue(
            livewell.refresh_queue(v_wanted.upstream, v_wanted.pool), 4, 5, 300, 5,
            jsonb_build_object('limiter', v_wanted.upstream));
        IF v_is.name IS NULL THEN
            PERFORM livewell.insert_type(v_wanted, v_now);
            RETURN QUERY SELECT 'created', 1::bigint, v_reasons, v_run;
            EXIT work;
        END IF;
        -- A parked type is changed by applying the same file again: that is how a person says that
        -- the plan includes it by now.
        IF cardinality(v_run) = 0 AND v_is.parked_reason IS NULL AND (
                v_is.ttl, v_is.negative_ttl, v_is.strategy, v_is.cron, v_is.zone, v_is.rule,
                v_is.calendar, v_is.max_source_age, v_is.has_source_time, v_is.rows_kind,
                v_is.pool, v_is.keys_max, v_is.key_pattern, v_is.prefetch, v_is.definition,
                v_is.columns)
            IS NOT DISTINCT FROM (
                v_wanted.ttl, v_wanted.negative_ttl, v_wanted.strategy, v_wanted.cron,
                v_wanted.zone, v_wanted.rule, v_wanted.calendar, v_wanted.max_source_age,
                v_wanted.has_source_time, v_wanted.rows_kind, v_wanted.pool, v_wanted.keys_max,
                v_wanted.key_pattern, v_wanted.prefetch, v_wanted.definition, v_wanted.columns)
        THEN
            RETURN QUERY SELECT 'unchanged', v_is.version, v_reasons, v_run;
            EXIT work;
        END IF;
        PERFORM livewell.update_type(v_is, v_wanted, v_now);
        RETURN QUERY SELECT 'changed', v_is.version + 1, v_reasons, v_run;
    END work;
    PERFORM set_config('role', v_role, true);
END
$$;
COMMENT ON FUNCTION livewell.apply_type IS
    'Puts a type into the registry with its table and queue, or answers with the SQL a person '
    'would have to run.';
REVOKE ALL ON FUNCTION livewell.apply_type FROM PUBLIC;

-- ── refresh/functions/registry/apply_upstream.sql ──
-- Put an upstream into the registry, or bring it up to date; its limiter and its queue with it, in
-- one transaction.
--
-- Called by: `livewell types apply`, as the owner; nobody else may. p_row has the columns of
--            livewell.upstream, p_limits those of livewell.limiter.
-- Nobody is kept waiting: a lock that is not there within 100 ms fails the call, and the caller
-- tries again (contract 16). The version grows only if something has changed. What the limiter has
-- used stays as it is.
CREATE OR REPLACE FUNCTION livewell.apply_upstream(
    p_row jsonb, p_limits jsonb, p_credentials text[])
RETURNS TABLE (outcome text, version bigint)
LANGUAGE plpgsql
SET search_path = ''
SET lock_timeout = '100ms'
AS $$
DECLARE
    v_wanted    livewell.upstream := jsonb_populate_record(NULL::livewell.upstream, p_row);
    v_is        livewell.upstream;
    v_now       timestamptz;
    v_role      text := current_setting('role');
BEGIN
    -- Whoever may, acts as the owner, so that the owner owns what is made; at the end he is himself
    -- again.
    PERFORM set_config(
        'role',
        (
            SELECT r.rolname FROM pg_catalog.pg_namespace n
            JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
            WHERE n.nspname = 'livewell_data'),
        true);
    <<work>>
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended('livewell.registry', 0));
        SELECT * INTO v_is FROM livewell.upstream u WHERE u.name = v_wanted.name FOR UPDATE;
        v_now := livewell.now();
        PERFORM livewell.declare_limiter(v_wanted.name, p_limits, p_credentials);
        PERFORM livewell.declare_queue(
            livewell.refresh_queue(v_wanted.name), 4, 5, 300, 5,
            jsonb_build_object('limiter', v_wanted.name));
        IF v_is.name IS NULL THEN
            INSERT INTO livewell.upstream (
                name, base_url, credential_in, vocabulary, counts, definition, version, applied_at)
            VALUES (
                v_wanted.name, v_wanted.base_url, v_wanted.credential_in, v_wanted.vocabulary,
                v_wanted.counts, v_wanted.definition, 1, v_now);
            RETURN QUERY SELECT 'created', 1::bigint;
        ELSIF (v_is.base_url, v_is.credential_in, v_is.vocabulary, v_is.counts, v_is.definition)
            IS DISTINCT FROM (
                v_wanted.base_url, v_wanted.credential_in, v_wanted.vocabulary, v_wanted.counts,
                v_wanted.definition) THEN
            UPDATE livewell.upstream u
            SET base_url = v_wanted.base_url, credential_in = v_wanted.credential_in,
                vocabulary = v_wanted.vocabulary, counts = v_wanted.counts,
                definition = v_wanted.definition,
                version = u.version + 1, applied_at = v_now
            WHERE u.name = v_wanted.name;
            RETURN QUERY SELECT 'changed', v_is.version + 1;
        ELSE
            RETURN QUERY SELECT 'unchanged', v_is.version;
        END IF;
    END work;
    PERFORM set_config('role', v_role, true);
END
$$;
COMMENT ON FUNCTION livewell.apply_upstream IS
    'Puts an upstream, its limiter and its queue into the registry.';
REVOKE ALL ON FUNCTION livewell.apply_upstream FROM PUBLIC;

-- ── refresh/functions/registry/bounds_statement.sql ──
-- The SQL that gives a column its CHECK, with the bounds as the constraint's comment: that is how
-- the next comparison knows what it says.
--
-- Called by: compare_bounds; compare_table(), create_statement().
CREATE OR REPLACE FUNCTION livewell.bounds_statement(p_name text, p_column jsonb)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT format(
        'ALTER TABLE livewell_data.%1$I ADD CONSTRAINT %2$I CHECK (%3$s); COMMENT ON CONSTRAINT '
        '%2$I ON livewell_data.%1$I IS %4$L;',
        p_name, (p_column ->> 'name') || '_bounds', livewell.column_bounds(p_column),
        p_column ->> 'bounds')
    WHERE livewell.column_bounds(p_column) IS NOT NULL
$$;
COMMENT ON FUNCTION livewell.bounds_statement IS
    'The SQL that adds the CHECK of a column, or NULL.';
REVOKE ALL ON FUNCTION livewell.bounds_statement FROM PUBLIC;

-- ── refresh/functions/registry/bounds_widened.sql ──
-- Whether whatever the old bounds allow, the new ones allow too: then the CHECK may be replaced
-- without looking at the rows.
--
-- Called by: compare_bounds; compare_table(). The old bounds are the constraint's comment, which a
--            person may have written over: what cannot be read is not wider.
CREATE OR REPLACE FUNCTION livewell.bounds_widened(p_old text, p_new jsonb, p_type text)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_old       jsonb := p_old::jsonb;
    v_number    boolean := p_type IN ('numeric', 'bigint', 'integer', 'double');
    v_low       integer;    -- -1: the new minimum is lower, 0: the same, 1: higher
    v_high      integer;
BEGIN
    IF jsonb_typeof(v_old) IS DISTINCT FROM 'object' THEN
        RETURN false;
    END IF;
    v_low := CASE WHEN NOT p_new ? 'min' THEN -1 WHEN NOT v_old ? 'min' THEN 1
        WHEN v_number THEN sign((p_new ->> 'min')::numeric - (v_old ->> 'min')::numeric)
        ELSE sign(
            extract(
                epoch FROM (p_new ->> 'min')::timestamptz - (v_old ->> 'min')::timestamptz)) END;
    v_high := CASE WHEN NOT p_new ? 'max' THEN 1 WHEN NOT v_old ? 'max' THEN -1
        WHEN v_number THEN sign((p_new ->> 'max')::numeric - (v_old ->> 'max')::numeric)
        ELSE sign(
            extract(
                epoch FROM (p_new ->> 'max')::timestamptz - (v_old ->> 'max')::timestamptz)) END;
    RETURN (
        v_low < 0
            OR v_low = 0
                AND (
                    coalesce((v_old ->> 'above_min')::boolean, false)
                        OR NOT coalesce((p_new ->> 'above_min')::boolean, false)))
        AND (
            v_high > 0
                OR v_high = 0
                    AND (
                        coalesce((v_old ->> 'below_max')::boolean, false)
                            OR NOT coalesce((p_new ->> 'below_max')::boolean, false)))
        AND (
            NOT p_new ? 'max_length'
                OR v_old ? 'max_length'
                    AND (p_new ->> 'max_length')::bigint >= (v_old ->> 'max_length')::bigint)
        AND (NOT p_new ? 'one_of' OR v_old ? 'one_of' AND p_new -> 'one_of' @> (v_old -> 'one_of'));
EXCEPTION
    WHEN data_exception OR invalid_text_representation THEN
        RETURN false;
END
$$;
COMMENT ON FUNCTION livewell.bounds_widened IS
    'Whether new bounds of a column allow all that the old ones did.';
REVOKE ALL ON FUNCTION livewell.bounds_widened FROM PUBLIC;

-- ── refresh/functions/registry/change_type.sql ──
-- Change what may be changed of a type without its file: its time to live, and when it is refreshed
-- by schedule. It holds until the file is applied again.
--
-- Called by: the API (PATCH /v1/types/NAME), as an operator; then redue_type, page by page. NULL
--            leaves as it is; p_strategy on_demand takes the expression away.
-- The due check plans the next walk (cron_due_at NULL). The version stays: what a job fetches has
-- not changed.
-- Why SECURITY DEFINER: nobody but the owner writes the registry by hand; through this an operator
-- may change these two things, within their bounds.
CREATE OR REPLACE FUNCTION livewell.change_type(
    p_name text, p_ttl interval, p_strategy text, p_cron text, p_zone text)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
BEGIN
    IF p_ttl <= interval '0' OR p_ttl > interval '400 days' THEN
        RAISE EXCEPTION 'ttl %: more than 0 and at most 400 days is allowed', p_ttl
        USING ERRCODE = 'LW003';
    END IF;
    IF p_strategy IS NOT NULL
       AND (
           p_strategy NOT IN ('on_demand', 'scheduled')
               OR (p_strategy = 'scheduled') <> (p_cron IS NOT NULL AND p_zone IS NOT NULL)) THEN
        RAISE EXCEPTION 'strategy: on_demand, or scheduled with cron and zone'
        USING ERRCODE = 'LW003';
    END IF;
    UPDATE livewell.data_type t
    SET ttl = coalesce(p_ttl, t.ttl), strategy = coalesce(p_strategy, t.strategy),
        cron = CASE WHEN p_strategy IS NULL THEN t.cron ELSE p_cron END,
        zone = CASE WHEN p_strategy IS NULL THEN t.zone ELSE p_zone END,
        cron_due_at = CASE WHEN p_strategy IS NULL THEN t.cron_due_at END,
        cron_cursor = CASE WHEN p_strategy IS NULL THEN t.cron_cursor END
    WHERE t.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.change_type IS
    'Changes the time to live and the schedule of a type until its file is applied again; false '
    'when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.change_type FROM PUBLIC;

-- ── refresh/functions/registry/clear_ttl.sql ──
-- Take the time to live of its own from a key: that of the type holds again, at once. Answers
-- whether it had one.
--
-- Called by: `livewell types ttl clear`, the API.
CREATE OR REPLACE FUNCTION livewell.clear_ttl(p_type text, p_key text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type livewell.data_type := livewell.registered_type(p_type);
BEGIN
    IF NOT EXISTS (
        SELECT FROM livewell.ledger l
        WHERE l.data_type = v_type.name AND l.key = p_key AND l.ttl_override IS NOT NULL) THEN
        RETURN false;
    END IF;
    PERFORM livewell.set_ttl(p_type, p_key, NULL);
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.clear_ttl IS 'Takes the time to live of its own from a key.';
REVOKE ALL ON FUNCTION livewell.clear_ttl FROM PUBLIC;

-- ── refresh/functions/registry/column_bounds.sql ──
-- What a column's CHECK says, from its bounds: {min, max, above_min, below_max, max_length,
-- one_of}. NULL: it has none.
--
-- Called by: bounds_statement; create_statement(), compare_table(). Names by %I, values by %L with
--            a cast to the column's type: a bound that is no value of the type fails when the table
--            is made.
CREATE OR REPLACE FUNCTION livewell.column_bounds(p_column jsonb)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
DECLARE
    v_name      text := p_column ->> 'name';
    v_bounds    jsonb := coalesce(p_column -> 'bounds', '{}');
    v_type      text := livewell.column_type(p_column ->> 'type');
BEGIN
    RETURN nullif(concat_ws(' AND ',
        CASE
            WHEN v_bounds ? 'min'
                THEN format(
                    '%I %s %L::%s', v_name,
                    CASE WHEN (v_bounds ->> 'above_min')::boolean THEN '>' ELSE '>=' END,
                    v_bounds ->> 'min', v_type)
        END,
        CASE
            WHEN v_bounds ? 'max'
                THEN format(
                    '%I %s %L::%s', v_name,
                    CASE WHEN (v_bounds ->> 'below_max')::boolean THEN '<' ELSE '<=' END,
                    v_bounds ->> 'max', v_type)
        END,
        CASE
            WHEN v_bounds ? 'max_length'
                THEN format(
                    'pg_catalog.char_length(%I) <= %L::pg_catalog.int4', v_name,
                    v_bounds ->> 'max_length')
        END,
        CASE
            WHEN v_bounds ? 'one_of'
                THEN format(
                    '%I = ANY (%L::pg_catalog.text[])', v_name,
                    ARRAY(SELECT jsonb_array_elements_text(v_bounds -> 'one_of'))::text)
        END), '');
END
$$;
COMMENT ON FUNCTION livewell.column_bounds IS
    'The CHECK expression of a column of a data table, or NULL.';
REVOKE ALL ON FUNCTION livewell.column_bounds FROM PUBLIC;

-- ── refresh/functions/registry/column_type.sql ──
-- The Postgres type of a column, from the closed list; anything else is refused, so that no text of
-- a file becomes SQL.
--
-- Called by: column_bounds(), create_statement(), compare_table().
-- Types are qualified: search_path = '' does not keep pg_temp out of the search for types.
CREATE OR REPLACE FUNCTION livewell.column_type(p_type text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
DECLARE
    v_type text := (CASE p_type
        WHEN 'text' THEN 'pg_catalog.text'
        WHEN 'numeric' THEN 'pg_catalog.numeric'
        WHEN 'bigint' THEN 'pg_catalog.int8'
        WHEN 'integer' THEN 'pg_catalog.int4'
        WHEN 'double' THEN 'pg_catalog.float8'
        WHEN 'boolean' THEN 'pg_catalog.bool'
        WHEN 'date' THEN 'pg_catalog.date'
        WHEN 'timestamptz' THEN 'pg_catalog.timestamptz'
        WHEN 'jsonb' THEN 'pg_catalog.jsonb'
    END);
BEGIN
    IF v_type IS NULL THEN
        RAISE EXCEPTION
            'column type "%": allowed are text, numeric, bigint, integer, double, boolean, date, '
            'timestamptz, jsonb',
            left(p_type, 60)
        USING ERRCODE = 'LW020';
    END IF;
    RETURN v_type;
END
$$;
COMMENT ON FUNCTION livewell.column_type IS
    'The Postgres type of a column of a data table, from the closed list.';
REVOKE ALL ON FUNCTION livewell.column_type FROM PUBLIC;

-- ── refresh/functions/registry/compare_bounds.sql ──
-- How the CHECK constraints of a type's live table differ from the bounds of its columns, with the
-- SQL that would end each difference.
--
-- Called by: compare_table. place: that of the column; 999 for a constraint that no column has.
-- A constraint is named <column>_bounds, and its comment has the bounds it was made from.
CREATE OR REPLACE FUNCTION livewell.compare_bounds(p_name text, p_columns jsonb, p_table oid)
RETURNS TABLE (place bigint, what text, additive boolean, statement text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH wanted AS (
        SELECT c.ordinality AS place, c.value AS declared, c.value ->> 'name' AS name,
               livewell.bounds_statement(p_name, c.value) AS bounds
        FROM jsonb_array_elements(p_columns) WITH ORDINALITY AS c (value, ordinality)
        UNION ALL
        SELECT 0, NULL, 'key', NULL
    ), live_check AS (
        SELECT k.conname::text AS name, obj_description(k.oid, 'pg_constraint') AS bounds,
               k.convalidated AS valid
        FROM pg_catalog.pg_constraint k
        WHERE k.conrelid = p_table AND k.contype = 'c'
    )
    SELECT w.place,
           format('the bounds of column "%s" are %s in the table and %s in the definition', w.name,
                  coalesce(k.bounds, CASE WHEN k.name IS NULL THEN 'none' ELSE 'unknown' END),
                  CASE WHEN w.bounds IS NULL THEN 'none' ELSE w.declared ->> 'bounds' END),
           w.bounds IS NULL OR coalesce(
               k.valid AND livewell.bounds_widened(
                   k.bounds, w.declared -> 'bounds', w.declared ->> 'type'), false),
           concat_ws(' ',
               format('ALTER TABLE livewell_data.%I DROP CONSTRAINT IF EXISTS %I;',
                      p_name, w.name || '_bounds'),
               w.bounds)
    FROM wanted w
    -- A column that is missing is added with its bounds.
    JOIN pg_catalog.pg_attribute a
         ON a.attrelid = p_table AND a.attname = w.name AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN live_check k ON k.name = w.name || '_bounds'
    WHERE w.place > 0 AND (k.name IS NOT NULL) <> (w.bounds IS NOT NULL)
       OR k.name IS NOT NULL
          AND (k.bounds IS DISTINCT FROM (w.declared ->> 'bounds') OR NOT k.valid)
    UNION ALL
    SELECT 999, format('constraint "%s" is in the table and not in the definition', k.name), false,
           format('ALTER TABLE livewell_data.%I DROP CONSTRAINT IF EXISTS %I;', p_name, k.name)
    FROM live_check k
    WHERE NOT EXISTS (SELECT FROM wanted w WHERE w.name || '_bounds' = k.name);
END
$$;
COMMENT ON FUNCTION livewell.compare_bounds IS
    'Differences between the CHECK constraints of a type''s live table and the bounds of its '
    'columns.';
REVOKE ALL ON FUNCTION livewell.compare_bounds FROM PUBLIC;

-- ── refresh/functions/registry/compare_table.sql ──
-- How the live table of a type differs from its columns, with the SQL that would end each
-- difference. No rows: they agree (contract 22).
--
-- Called by: apply_type(), which runs what is additive and refuses the rest; `livewell types
--            check`, which only tells.
-- Additive: a missing table, a new nullable column, a column that may now be null, bounds that
-- allow all they did. Everything else could lose or refuse data that is there.
CREATE OR REPLACE FUNCTION livewell.compare_table(p_name text, p_columns jsonb)
RETURNS TABLE (what text, additive boolean, statement text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_table     oid := (
        SELECT c.oid FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'livewell_data' AND c.relname = p_name AND c.relkind IN ('r', 'p'));
BEGIN
    IF v_table IS NULL THEN
        RETURN QUERY
        SELECT format('table livewell_data.%I does not exist', p_name), true,
               livewell.create_statement(p_name, p_columns);
        RETURN;
    END IF;
    RETURN QUERY
    WITH wanted AS (
        SELECT c.ordinality AS place, c.value AS declared, c.value ->> 'name' AS name,
               livewell.column_type(c.value ->> 'type') AS type,
               (c.value ->> 'nullable')::boolean AS nullable,
               (c.value ->> 'key')::boolean AS in_key,
               livewell.bounds_statement(p_name, c.value) AS bounds
        FROM jsonb_array_elements(p_columns) WITH ORDINALITY AS c (value, ordinality)
        UNION ALL
        SELECT 0, NULL, 'key', 'pg_catalog.text', false, true, NULL
    ), live AS (
        SELECT a.attname::text AS name, a.atttypid AS type, NOT a.attnotnull AS nullable
        FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = v_table AND a.attnum > 0 AND NOT a.attisdropped
    ), primary_key AS (
        SELECT k.conname::text AS name, ARRAY(
                   SELECT a.attname::text
                   FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, place)
                   JOIN pg_catalog.pg_attribute a
                        ON a.attrelid = v_table AND a.attnum = u.attnum
                   ORDER BY u.place) AS names
        FROM pg_catalog.pg_constraint k
        WHERE k.conrelid = v_table AND k.contype = 'p'
    ), wanted_key AS (
        SELECT array_agg(w.name ORDER BY w.place) AS names FROM wanted w WHERE w.in_key
    ), difference AS (
        SELECT w.place, format('column "%s" is missing', w.name) AS what,
               w.nullable AND NOT w.in_key AS additive,
               format(
                   'ALTER TABLE livewell_data.%I ADD COLUMN %I %s%s;', p_name, w.name, w.type,
                   CASE w.type WHEN 'pg_catalog.text' THEN ' COLLATE pg_catalog."C"' ELSE '' END)
               || coalesce(' ' || w.bounds, '')
               || CASE WHEN w.nullable THEN '' ELSE format(
                      ' UPDATE livewell_data.%1$I SET %2$I = /* a value for the rows there are */;'
                      ' ALTER TABLE livewell_data.%1$I ALTER COLUMN %2$I SET NOT NULL;',
                      p_name, w.name) END AS statement
        FROM wanted w LEFT JOIN live l USING (name) WHERE l.name IS NULL
        UNION ALL
        SELECT 1000, format('column "%s" is in the table and not in the definition', l.name), false,
               format('ALTER TABLE livewell_data.%I DROP COLUMN %I;', p_name, l.name)
        FROM live l LEFT JOIN wanted w USING (name) WHERE w.name IS NULL
        UNION ALL
        SELECT w.place,
               format('column "%s" is %s in the table and %s in the definition',
                      w.name, l.type::regtype, to_regtype(w.type)),
               false,
               format(
                   'ALTER TABLE livewell_data.%1$I ALTER COLUMN %2$I TYPE %3$s USING %2$I::%3$s;',
                      p_name, w.name, w.type)
        FROM wanted w JOIN live l USING (name) WHERE l.type <> to_regtype(w.type)
        UNION ALL
        SELECT w.place,
               format('column "%s" is %s in the table and %s in the definition', w.name,
                      CASE WHEN l.nullable THEN 'nullable' ELSE 'NOT NULL' END,
                      CASE WHEN w.nullable THEN 'nullable' ELSE 'NOT NULL' END),
               w.nullable,
               format('ALTER TABLE livewell_data.%I ALTER COLUMN %I %s NOT NULL;', p_name, w.name,
                      CASE WHEN w.nullable THEN 'DROP' ELSE 'SET' END)
        FROM wanted w JOIN live l USING (name) WHERE l.nullable <> w.nullable
        UNION ALL
        SELECT b.place, b.what, b.additive, b.statement
        FROM livewell.compare_bounds(p_name, p_columns, v_table) AS b
        UNION ALL
        SELECT 1002,
               format('the primary key is (%s) in the table and (%s) in the definition',
                      array_to_string(p.names, ', '), array_to_string(wk.names, ', ')),
               false,
               concat_ws(' ',
                   CASE WHEN p.name IS NOT NULL THEN
                       format(
                           'ALTER TABLE livewell_data.%I DROP CONSTRAINT %I;', p_name, p.name) END,
                   format('ALTER TABLE livewell_data.%I ADD PRIMARY KEY (%s);', p_name, (
                       SELECT string_agg(format('%I', n), ', ') FROM unnest(wk.names) AS n)))
        FROM wanted_key wk LEFT JOIN primary_key p ON true WHERE p.names IS DISTINCT FROM wk.names
    )
    SELECT d.what, d.additive, d.statement FROM difference d ORDER BY d.place, d.what;
END
$$;
COMMENT ON FUNCTION livewell.compare_table IS
    'Differences between the live table of a type and its columns, each with the SQL that ends it.';
REVOKE ALL ON FUNCTION livewell.compare_table FROM PUBLIC;

-- ── refresh/functions/registry/create_statement.sql ──
-- The SQL that makes the table of a type: key, then the columns in their order; one row per key, or
-- per key and row key.
--
-- Called by: compare_table(). p_columns is data_type.columns: [{name, type, nullable, key,
--            bounds}].
-- The primary key has no name of ours: it shares a namespace with tables, and another type may be
-- called that.
CREATE OR REPLACE FUNCTION livewell.create_statement(p_name text, p_columns jsonb)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT format(
        'CREATE TABLE livewell_data.%I (key pg_catalog.text COLLATE pg_catalog."C" NOT NULL, %s, '
        'PRIMARY KEY (%s)) WITH (fillfactor = 80);',
            p_name,
            string_agg(
                format('%I %s%s%s', c.value ->> 'name', livewell.column_type(c.value ->> 'type'),
                CASE c.value ->> 'type' WHEN 'text' THEN ' COLLATE pg_catalog."C"' ELSE '' END,
                CASE
                    WHEN (c.value ->> 'nullable')::boolean THEN ''
                    ELSE ' NOT NULL'
                END), ', ' ORDER BY c.ordinality),
            concat_ws(
                ', ', 'key',
                string_agg(
                    format('%I', c.value ->> 'name'), ', ' ORDER BY c.ordinality)
                    FILTER (WHERE (c.value ->> 'key')::boolean)))
        || coalesce(
            ' '
                || string_agg(
                    livewell.bounds_statement(p_name, c.value), ' ' ORDER BY c.ordinality),
            '')
    FROM jsonb_array_elements(p_columns) WITH ORDINALITY AS c (value, ordinality)
$$;
COMMENT ON FUNCTION livewell.create_statement IS 'The SQL that makes the table of a type.';
REVOKE ALL ON FUNCTION livewell.create_statement FROM PUBLIC;

-- ── refresh/functions/registry/deactivate_universe.sql ──
-- Leave keys out of the walk of a scheduled type from now on; they keep their data. Answers how
-- many were active.
--
-- Called by: `livewell types universe deactivate`, the API.
CREATE OR REPLACE FUNCTION livewell.deactivate_universe(p_type text, p_keys text[])
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_n         integer;
BEGIN
    PERFORM FROM livewell.universe u
    WHERE u.data_type = v_type.name AND u.key = ANY (p_keys) AND u.active ORDER BY u.key FOR UPDATE;
    UPDATE livewell.universe u SET active = false
    WHERE u.data_type = v_type.name AND u.key = ANY (p_keys) AND u.active;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.deactivate_universe IS
    'Leaves keys out of the walk of a scheduled type.';
REVOKE ALL ON FUNCTION livewell.deactivate_universe FROM PUBLIC;

-- ── refresh/functions/registry/insert_type.sql ──
-- Write a new type into the registry, as version 1.
--
-- Called by: apply_type, under its lock and as the owner.
CREATE OR REPLACE FUNCTION livewell.insert_type(p_wanted livewell.data_type, p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    INSERT INTO livewell.data_type (
        name, upstream, ttl, negative_ttl, strategy, cron, zone, cron_due_at, rule,
        calendar, max_source_age, has_source_time, rows_kind, pool, keys_max,
        key_pattern, size_estimate, prefetch, definition, columns, version, applied_at)
    VALUES (
        p_wanted.name, p_wanted.upstream, p_wanted.ttl, p_wanted.negative_ttl,
        p_wanted.strategy, p_wanted.cron, p_wanted.zone, p_wanted.cron_due_at,
        p_wanted.rule, p_wanted.calendar, p_wanted.max_source_age,
        p_wanted.has_source_time, p_wanted.rows_kind, p_wanted.pool, p_wanted.keys_max,
        p_wanted.key_pattern, p_wanted.size_estimate, p_wanted.prefetch,
        p_wanted.definition, p_wanted.columns, 1, p_now);
END
$$;
COMMENT ON FUNCTION livewell.insert_type IS 'Writes a new type into the registry.';
REVOKE ALL ON FUNCTION livewell.insert_type FROM PUBLIC;

-- ── refresh/functions/registry/list_ttls.sql ──
-- The keys with a time to live of their own, by type and key, after a given one.
--
-- Called by: `livewell types ttl list`, the API. Index: ledger_override_idx.
CREATE OR REPLACE FUNCTION livewell.list_ttls(
    p_type text DEFAULT NULL, p_after_type text DEFAULT '', p_after_key text DEFAULT '',
    p_limit integer DEFAULT 100)
RETURNS TABLE (data_type text, key text, ttl interval, type_ttl interval)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT l.data_type, l.key, l.ttl_override, t.ttl
    FROM livewell.ledger l
    JOIN livewell.data_type t ON t.name = l.data_type
    WHERE l.ttl_override IS NOT NULL
      AND (l.data_type, l.key) > (p_after_type COLLATE "C", p_after_key COLLATE "C")
      AND (p_type IS NULL OR l.data_type = p_type)
    ORDER BY l.data_type, l.key
    LIMIT least(p_limit, 1000)
$$;
COMMENT ON FUNCTION livewell.list_ttls IS 'Keys with a time to live of their own.';
REVOKE ALL ON FUNCTION livewell.list_ttls FROM PUBLIC;

-- ── refresh/functions/registry/list_universe.sql ──
-- The keys a scheduled type walks through, in the order of the walk, after a given one; with those
-- that were deactivated if asked for.
--
-- Called by: `livewell types universe list`, the API. Index: universe_pkey.
CREATE OR REPLACE FUNCTION livewell.list_universe(
    p_type text, p_after text DEFAULT '', p_limit integer DEFAULT 100,
    p_inactive boolean DEFAULT false)
RETURNS TABLE (key text, active boolean, added_at timestamptz)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT u.key, u.active, u.added_at
    FROM livewell.universe u
    WHERE u.data_type = (livewell.registered_type(p_type)).name AND u.key > p_after COLLATE "C"
      AND (u.active OR p_inactive)
    ORDER BY u.key
    LIMIT least(p_limit, 1000)
$$;
COMMENT ON FUNCTION livewell.list_universe IS 'The keys a scheduled type walks through.';
REVOKE ALL ON FUNCTION livewell.list_universe FROM PUBLIC;

-- ── refresh/functions/registry/pause_type.sql ──
-- Stop or start refreshing one type. What is already a job is done; what is stored is read as
-- before, with its true verdict.
--
-- Called by: CLI `types pause|resume`, clients.
-- Resuming also lets go of the reason for which the type was parked: the plan may include its
-- endpoint by now, and if not the next answer says so again.
CREATE OR REPLACE FUNCTION livewell.pause_type(p_name text, p_paused boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.data_type t
    SET paused_at = CASE WHEN p_paused THEN coalesce(t.paused_at, v_now) END,
        parked_reason = CASE WHEN p_paused THEN t.parked_reason END
    WHERE t.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.pause_type IS
    'Pauses or resumes the refreshes of a type; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.pause_type FROM PUBLIC;

-- ── refresh/functions/registry/pause_upstream.sql ──
-- Stop or start refreshing everything that comes from one upstream. What is already a job is done.
--
-- Called by: CLI `types pause|resume --upstream`, clients.
CREATE OR REPLACE FUNCTION livewell.pause_upstream(p_name text, p_paused boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.upstream u
    SET paused_at = CASE WHEN p_paused THEN coalesce(u.paused_at, v_now) END
    WHERE u.name = p_name;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.pause_upstream IS
    'Pauses or resumes the refreshes of an upstream; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.pause_upstream FROM PUBLIC;

-- ── refresh/functions/registry/redue_type.sql ──
-- Rewrite due_at of one page of a type's keys after its time to live or its rule changed; answers
-- the last key of the page, NULL when it was the last page.
--
-- Called by: `types apply` and whoever changes a type, page by page until it answers NULL; one
--            call, one transaction.
-- Index:     ledger_pkey. Parked keys stay parked: their due_at is computed when somebody comes.
--            What is being fetched (due within its two minutes) is left to its store.
CREATE OR REPLACE FUNCTION livewell.redue_type(p_type text, p_after_key text, p_limit integer)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_now   timestamptz;
    v_type  livewell.data_type;
    v_queue text;
    v_keys  text[];
BEGIN
    SELECT * INTO v_type FROM livewell.data_type t WHERE t.name = p_type;
    v_type.definition := NULL;      -- see judge_keys
    v_type.columns := NULL;
    v_queue := livewell.refresh_queue(v_type.upstream, v_type.pool);
    v_keys := ARRAY(
        SELECT l.key FROM livewell.ledger l
        WHERE l.data_type = p_type AND l.key > coalesce(p_after_key, '') ORDER BY l.key
        LIMIT least(greatest(p_limit, 1), 10000));
    PERFORM FROM livewell.ledger l
    WHERE l.data_type = p_type AND l.key = ANY (v_keys) ORDER BY l.key FOR NO KEY UPDATE;
    v_now := livewell.now();
    UPDATE livewell.ledger l SET due_at = livewell.next_due(v_type, l, v_now)
    WHERE l.data_type = p_type AND l.key = ANY (v_keys) AND l.due_at IS NOT NULL
      AND NOT EXISTS (
          SELECT FROM livewell.job j
          WHERE j.queue = v_queue AND j.unique_key = p_type || ':' || l.key
            AND j.held_by IS DISTINCT FROM 'k');
    RETURN v_keys[least(greatest(p_limit, 1), 10000)];
END
$$;
COMMENT ON FUNCTION livewell.redue_type IS
    'Rewrites due_at of one page of a type; answers where the next page begins, NULL at the end.';
REVOKE ALL ON FUNCTION livewell.redue_type FROM PUBLIC;

-- ── refresh/functions/registry/registered_type.sql ──
-- The registry's row of a type; an unknown name is refused.
--
-- Called by: add_universe, clear_ttl, deactivate_universe, list_universe, read_values, set_ttl; the
--            functions that take a type's name.
CREATE OR REPLACE FUNCTION livewell.registered_type(p_type text)
RETURNS livewell.data_type
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_type livewell.data_type;
BEGIN
    SELECT * INTO v_type FROM livewell.data_type t WHERE t.name = p_type;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'type "%" is not in the registry; see: livewell types list',
            left(p_type, 60)
        USING ERRCODE = 'LW022';
    END IF;
    RETURN v_type;
END
$$;
COMMENT ON FUNCTION livewell.registered_type IS 'The registry''s row of a type, or an error.';
REVOKE ALL ON FUNCTION livewell.registered_type FROM PUBLIC;

-- ── refresh/functions/registry/set_ttl.sql ──
-- Give one key a time to live of its own (R2). It takes effect at once: the key is due when the new
-- time says, and who streams it is told.
--
-- Called by: clear_ttl; `livewell types ttl set`, the API. A key that nobody asked for yet gets its
--            row here, parked.
-- A parked key (due_at NULL) stays parked: nobody watches it.
-- The lock comes first: a row that prune_refresh deletes just then is gone after the wait, and is
-- made anew (race-tested).
CREATE OR REPLACE FUNCTION livewell.set_ttl(p_type text, p_key text, p_ttl interval)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_row       livewell.ledger;
    v_now       timestamptz;
BEGIN
    IF NOT livewell.key_fits(v_type.key_pattern, p_key) THEN
        RAISE EXCEPTION 'key "%" does not fit % of type %', left(p_key, 60), v_type.key_pattern,
            p_type
        USING ERRCODE = 'LW003';
    END IF;
    IF p_ttl <= interval '0' OR p_ttl > interval '400 days' THEN
        RAISE EXCEPTION 'ttl % of % %: more than 0 and at most 400 days is allowed', p_ttl, p_type,
            p_key
        USING ERRCODE = 'LW003';
    END IF;
    SELECT *
    INTO v_row FROM livewell.ledger l
    WHERE l.data_type = v_type.name AND l.key = p_key FOR UPDATE;
    v_now := livewell.now();
    IF NOT FOUND THEN
        INSERT INTO livewell.ledger (data_type, key, upstream, status_at)
        VALUES (v_type.name, p_key, v_type.upstream, v_now) ON CONFLICT DO NOTHING;
        SELECT *
        INTO v_row FROM livewell.ledger l
        WHERE l.data_type = v_type.name AND l.key = p_key FOR UPDATE;
    END IF;
    IF v_row.ttl_override IS NOT DISTINCT FROM p_ttl THEN
        RETURN;
    END IF;
    v_row.ttl_override := p_ttl;
    UPDATE livewell.ledger l
    SET ttl_override = p_ttl,
        due_at = CASE WHEN l.due_at IS NOT NULL THEN livewell.next_due(v_type, v_row, v_now) END,
        status_version = l.status_version + 1, status_at = greatest(v_now, l.status_at)
    WHERE l.data_type = v_type.name AND l.key = p_key;
END
$$;
COMMENT ON FUNCTION livewell.set_ttl IS 'Sets the time to live of one key; NULL takes it away.';
REVOKE ALL ON FUNCTION livewell.set_ttl FROM PUBLIC;

-- ── refresh/functions/registry/update_type.sql ──
-- Write what a type's file says now into its row of the registry, as the next version.
--
-- Called by: apply_type, under its lock and as the owner. p_is: the row as it is.
-- A measured size estimate stays until the file states another. The walk of a schedule is planned
-- anew only if the schedule has changed.
CREATE OR REPLACE FUNCTION livewell.update_type(
    p_is livewell.data_type, p_wanted livewell.data_type, p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_moved boolean := (p_is.cron, p_is.zone) IS DISTINCT FROM (p_wanted.cron, p_wanted.zone);
BEGIN
    UPDATE livewell.data_type t
    SET ttl = p_wanted.ttl, negative_ttl = p_wanted.negative_ttl, strategy = p_wanted.strategy,
        cron = p_wanted.cron, zone = p_wanted.zone,
        cron_due_at = CASE WHEN v_moved THEN p_wanted.cron_due_at ELSE t.cron_due_at END,
        cron_cursor = CASE WHEN p_wanted.cron IS NULL THEN NULL ELSE t.cron_cursor END,
        rule = p_wanted.rule, calendar = p_wanted.calendar,
        max_source_age = p_wanted.max_source_age, has_source_time = p_wanted.has_source_time,
        rows_kind = p_wanted.rows_kind,
        pool = p_wanted.pool, keys_max = p_wanted.keys_max, key_pattern = p_wanted.key_pattern,
        prefetch = p_wanted.prefetch,
        size_estimate = CASE
            WHEN p_is.definition #> '{type,size_estimate}'
                 = p_wanted.definition #> '{type,size_estimate}'
            THEN t.size_estimate ELSE p_wanted.size_estimate END,
        parked_reason = NULL, definition = p_wanted.definition, columns = p_wanted.columns,
        version = t.version + 1, applied_at = p_now
    WHERE t.name = p_wanted.name;
END
$$;
COMMENT ON FUNCTION livewell.update_type IS
    'Brings a type of the registry up to date with its file.';
REVOKE ALL ON FUNCTION livewell.update_type FROM PUBLIC;

-- ── refresh/functions/store/change_questions.sql ──
-- Jobs that go back are asked another way next time, and a type that the plan does not include is
-- parked.
--
-- Called by: store_refreshes, if not every result was good. Arrays in one order; p_ends as for
-- finish_jobs. Index: job_pkey, data_type_pkey.
-- The planner settings of store_refreshes hold here too.
-- What failed, or was refused together with others, is asked alone: the next failure is its own
-- (R14).
-- unproven:  on a connection of its own. forgotten: without the condition, for all of it.
CREATE OR REPLACE FUNCTION livewell.change_questions(
    p_ids bigint[], p_types text[], p_judged text[], p_errors text[], p_ends jsonb)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.job j SET call_key = j.unique_key
    WHERE j.id = ANY (
        ARRAY(SELECT (e ->> 'id')::bigint FROM jsonb_array_elements(p_ends) AS e
              WHERE e ->> 'outcome' = 'retry')
        || ARRAY(SELECT u.id FROM unnest(p_ids, p_judged) AS u (id, judged)
                 WHERE u.judged = 'singly'))
      AND j.call_key <> j.unique_key;
    IF p_judged && '{unproven,forgotten}' THEN
        UPDATE livewell.job j
        SET payload = CASE u.judged WHEN 'unproven' THEN j.payload || '{"fresh": true}'
                                    ELSE j.payload - '{etag,last_modified,hash,since}'::text[] END
        FROM unnest(p_ids, p_judged) AS u (id, judged)
        WHERE j.id = u.id AND u.judged IN ('unproven', 'forgotten');
    END IF;
    UPDATE livewell.data_type d
    SET parked_reason = left(u.judged || ': ' || coalesce(u.error, ''), 300)
    FROM (
        SELECT DISTINCT ON (u.name) u.name, u.judged, u.error
        FROM unnest(p_types, p_judged, p_errors) AS u (name, judged, error)
        WHERE livewell.refresh_reasons() -> u.judged ->> 'ledger' = 'parked_type'
        ORDER BY u.name) u
    WHERE d.name = u.name AND d.parked_reason IS NULL;
END
$$;
COMMENT ON FUNCTION livewell.change_questions IS
    'Changes how jobs that go back are asked, and parks types that the plan does not include.';
REVOKE ALL ON FUNCTION livewell.change_questions FROM PUBLIC;

-- ── refresh/functions/store/count_refreshes.sql ──
-- Count what became of refreshes, by type and outcome, warn of what was refused, and let the sizes
-- learn.
--
-- Called by: store_refreshes, as one of its last steps: the counters are shared by the whole fleet,
--            and locked until the commit.
-- Sizes:       bytes per key and type, in limiter_estimate under the kind livewell.refresh:<type>;
--              dispatch reserves by them. 0.9 old + 0.1 new once per batch, the first as it is
--              (R16).
CREATE OR REPLACE FUNCTION livewell.count_refreshes(
    p_types text[], p_outcomes text[], p_wire bigint[], p_decoded bigint[], p_errors text[],
    p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    c_quiet CONSTANT text[] :=
        '{stored,corrected,unchanged,missing,type_changed,singly,unproven,forgotten,fenced}';
BEGIN
    INSERT INTO livewell.refresh_count AS c (hour, data_type, outcome, n, wire_bytes, decoded_bytes)
    SELECT date_trunc('hour', p_now, 'UTC'), g.type, left(g.outcome, 40), count(*),
           coalesce(sum(g.wire), 0), coalesce(sum(g.decoded), 0)
    FROM unnest(p_types, p_outcomes, p_wire, p_decoded) AS g (type, outcome, wire, decoded)
    WHERE g.type IS NOT NULL AND g.outcome IS NOT NULL
    GROUP BY g.type, left(g.outcome, 40) ORDER BY g.type, left(g.outcome, 40)
    ON CONFLICT (hour, data_type, outcome) DO UPDATE SET n = c.n + excluded.n,
    wire_bytes = c.wire_bytes + excluded.wire_bytes,
    decoded_bytes = c.decoded_bytes + excluded.decoded_bytes;

    INSERT INTO livewell.limiter_estimate AS e (limiter, kind, units)
    SELECT d.upstream, 'livewell.refresh:' || d.name, w.wire_units
    FROM (
        SELECT g.type, sum(g.wire)::float8 / count(*) AS wire,
               sum(g.decoded)::float8 / count(*) AS decoded
          FROM unnest(p_types, p_outcomes, p_wire, p_decoded) AS g (type, outcome, wire, decoded)
          WHERE g.outcome IN ('stored', 'corrected', 'unchanged') GROUP BY g.type) g
    JOIN livewell.data_type d ON d.name = g.type
    JOIN livewell.upstream u ON u.name = d.upstream
    JOIN livewell.limiter l ON l.name = d.upstream
    CROSS JOIN LATERAL (
        SELECT
            CASE u.counts
                WHEN 'wire' THEN g.wire
                WHEN 'decoded' THEN g.decoded
                ELSE greatest(g.wire, g.decoded)
            END AS wire_units) w
    WHERE w.wire_units > 0 ORDER BY d.upstream, d.name
    ON CONFLICT (limiter, kind) DO UPDATE SET units = 0.9 * e.units + 0.1 * excluded.units;

    IF NOT p_outcomes <@ c_quiet THEN
        PERFORM livewell.warn('refresh', w.type || ': ' || w.outcome, w.error)
        FROM (
            SELECT g.type, left(g.outcome, 40) AS outcome, max(g.error) AS error
            FROM unnest(p_types, p_outcomes, p_errors) AS g (type, outcome, error)
              WHERE g.outcome <> ALL (c_quiet) GROUP BY g.type, left(g.outcome, 40)
              ORDER BY g.type, left(g.outcome, 40)) w;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.count_refreshes IS
    'Counts refreshes by type and outcome, warns of refusals and teaches the size estimates.';
REVOKE ALL ON FUNCTION livewell.count_refreshes FROM PUBLIC;

-- ── refresh/functions/store/judge_refresh.sql ──
-- What an answer means for what is stored: stored, corrected, unchanged, older, missing,
-- type_changed, forgotten, singly, unproven, or the reason for which it is refused.
--
-- Called by: settle_refreshes, the key's ledger row locked and read after that.
-- p_pinned:    the type's version that the job was made for. The definition that the answer was
--              read with must be the same one, and both must still be in force.
-- older:       the source's own time is before what is stored: refused, whoever brings it (GU1).
--              Upstreams bounce between replicas.
-- corrected:   the same source time and other content: stored, and counted, for dates do not move
--              when figures are corrected (R14).
-- missing:     the upstream knows no such key, and never did; of a key that had data the same
--              answer is a failure of the upstream (empty).
-- forgotten:   "not modified", but since what we have not stored; or the tail of a history that is
--              not what is stored: asked again, without the condition.
CREATE OR REPLACE FUNCTION livewell.judge_refresh(
    p_type livewell.data_type, p_ledger livewell.ledger, p_pinned bigint, p_result jsonb)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_outcome   text := p_result ->> 'outcome';
    v_source    timestamp with time zone := (p_result ->> 'source_at')::timestamp with time zone;
    v_same      boolean := p_ledger.fetched_at IS NOT NULL
        AND coalesce(p_ledger.content_hash = decode(p_result ->> 'hash', 'hex'), false);
BEGIN
    IF p_type.version IS NULL OR p_type.version IS DISTINCT FROM p_pinned
       OR p_type.version IS DISTINCT FROM (p_result ->> 'version')::bigint THEN
        RETURN 'type_changed';
    END IF;
    IF v_outcome = 'missing' THEN
        RETURN CASE WHEN p_ledger.fetched_at IS NULL THEN 'missing' ELSE 'empty' END;
    ELSIF v_outcome = 'same' THEN
        RETURN CASE WHEN v_same THEN 'unchanged' ELSE 'forgotten' END;
    ELSIF v_outcome <> 'value' THEN
        RETURN
            CASE
                WHEN v_outcome IN ('singly', 'unproven', 'forgotten') THEN v_outcome
                ELSE coalesce(p_result ->> 'reason', 'transient') END;
    END IF;
    IF p_type.has_source_time THEN
        IF v_source IS NULL THEN
            RETURN 'no_source_time';
        ELSIF v_source < p_ledger.source_at THEN
            RETURN 'older';
        ELSIF v_source = p_ledger.source_at AND NOT v_same THEN
            RETURN 'corrected';
        END IF;
    END IF;
    RETURN CASE WHEN v_same THEN 'unchanged' ELSE 'stored' END;
END
$$;
COMMENT ON FUNCTION livewell.judge_refresh IS
    'Compares an answer with what is stored and says what becomes of it.';
REVOKE ALL ON FUNCTION livewell.judge_refresh FROM PUBLIC;

-- ── refresh/functions/store/move_ledger.sql ──
-- The ledger row as it is after an answer. Pure: nothing is written here.
--
-- Called by: settle_refreshes. What a reason does to the row: refresh_reasons; a reason that is not
--            in it is a failure.
-- p_checked:   when the answer was asked for, on the database's clock. Not when it is stored: an
--              answer that lay around is as old as it is.
-- p_exhausted: the job has no attempts left, so the key is backed off 1 min · 2ⁿ up to 6 h, whoever
--              watches (R9).
-- older:       checked_at does not move, nor does anything that a verdict is made of: an answer
--              from before what is stored confirms nothing (R14, GU5). The key is asked again after
--              as long as it has been stale, from a minute (or its time to live) to 6 h, which
--              doubles each time. What was failing goes on failing.
-- status_version grows with everything a viewer or a waiter wants to know, also that a check
-- brought nothing.
CREATE OR REPLACE FUNCTION livewell.move_ledger(
    p_type livewell.data_type, p_ledger livewell.ledger, p_result jsonb, p_judged text,
    p_exhausted boolean, p_checked timestamptz, p_now timestamptz)
RETURNS livewell.ledger
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    c_backoff_max CONSTANT interval := interval '6 hours';
    v_l         livewell.ledger := p_ledger;
    v_stale     timestamp with time zone;
    v_effect    text := livewell.refresh_reasons() -> p_judged ->> 'ledger';
BEGIN
    IF p_judged IN ('forgotten', 'singly', 'unproven') THEN
        RETURN v_l;
    ELSIF v_effect = 'due' THEN
        v_l.due_at := p_now;
        RETURN v_l;
    END IF;
    v_l.status_version := v_l.status_version + 1;
    v_l.status_at := p_now;

    IF p_judged IN ('stored', 'corrected', 'unchanged', 'missing') THEN
        -- Never back, unless the clock itself went back: then what is stored lies in the future,
        -- and would stand there.
        v_l.checked_at := greatest(
            CASE WHEN p_ledger.checked_at <= p_now THEN p_ledger.checked_at END, p_checked);
        v_l.missing := p_judged = 'missing';
        v_l.failures := 0;
        v_l.failing_since := NULL;
        v_l.retry_at := NULL;
        v_l.reason := NULL;
        v_l.error := NULL;
        v_l.demanded_at := NULL;
        v_l.tries := 0;
        v_l.tried_at := NULL;
        v_l.older_since := NULL;
        v_l.older_source_at := NULL;
        IF p_judged IN ('stored', 'corrected') THEN
            v_l.version := v_l.version + 1;
            v_l.fetched_at := v_l.checked_at;
            v_l.changed_at := p_now;
            v_l.content_hash := decode(p_result ->> 'hash', 'hex');
        END IF;
        IF p_result ->> 'outcome' = 'value' THEN
            v_l.source_at := greatest(
                (p_result ->> 'source_at')::timestamp with time zone,
                CASE WHEN p_type.has_source_time THEN p_ledger.source_at END);
            v_l.event_at := (p_result ->> 'event_at')::timestamp with time zone;
            v_l.etag := left(p_result ->> 'etag', 200);
            v_l.last_modified := left(p_result ->> 'last_modified', 100);
        END IF;
        v_l.due_at := livewell.next_due(p_type, v_l, p_now);
        RETURN v_l;
    END IF;

    v_l.tries := least(v_l.tries + 1, 1000000);
    v_l.tried_at := p_now;
    IF v_effect = 'older' THEN
        v_l.older_since := coalesce(p_ledger.older_since, p_now);
        v_l.older_source_at := (p_result ->> 'source_at')::timestamp with time zone;
        v_stale := livewell.stale_at(p_type, p_ledger);
        v_l.demanded_at := NULL;
        v_l.due_at := livewell.next_due(p_type, v_l, p_now);
        IF v_stale <= p_now AND v_stale > '-infinity' THEN
            v_l.due_at := greatest(
                v_l.due_at,
                p_now
                    + least(
                        c_backoff_max,
                        greatest(least(
                            coalesce(p_ledger.ttl_override, p_type.ttl),
                            interval '1 minute'), p_now - v_stale)));
        END IF;
        RETURN v_l;
    END IF;

    -- A failure: the value stays, and how old it is stays.
    v_l.reason := left(p_judged, 40);
    v_l.error := left(p_result ->> 'error', 300);
    v_l.failing_since := coalesce(p_ledger.failing_since, p_now);
    IF v_effect IN ('parked_key', 'parked_type') THEN
        v_l.failures := least(v_l.failures + 1, 1000);
        v_l.retry_at := p_now + p_type.negative_ttl;
        v_l.demanded_at := NULL;
        v_l.due_at := livewell.next_due(p_type, v_l, p_now);
    ELSIF p_exhausted THEN
        v_l.retry_at := p_now
            + least(c_backoff_max, interval '1 minute' * 2 ^ least(v_l.failures, 10));
        v_l.failures := least(v_l.failures + 1, 1000);
        v_l.demanded_at := NULL;
        v_l.due_at := livewell.next_due(p_type, v_l, p_now);
    END IF;
    RETURN v_l;
END
$$;
COMMENT ON FUNCTION livewell.move_ledger IS
    'The ledger row after an answer: times, version, failures and when it is due again.';
REVOKE ALL ON FUNCTION livewell.move_ledger FROM PUBLIC;

-- ── refresh/functions/store/own_results.sql ──
-- Lock what these results are about, and give those whose jobs are still this worker's, as arrays
-- in the order of types and keys; with the time at which all of it was locked.
--
-- Called by: store_refreshes, first. A result is ours by its job's id, fence and worker.
-- Index:     job_pkey, ledger_pkey. Nested loops only, for the statistics of a small or new table
--            would otherwise have it read whole.
-- Locks:     job rows by id, then ledger rows by type and key. Each look is a statement of its own
--            after the lock, so it sees what was committed before.
CREATE OR REPLACE FUNCTION livewell.own_results(p_worker bigint, p_results jsonb)
RETURNS TABLE (
    ids bigint[], fences bigint[], types text[], keys text[], results jsonb[], at timestamptz)
LANGUAGE plpgsql
SET search_path = ''
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_given bigint[] := ARRAY(
        SELECT (e ->> 'id')::bigint FROM jsonb_array_elements(p_results) AS e);
    v_now   timestamptz;
BEGIN
    PERFORM FROM livewell.job j WHERE j.id = ANY (v_given) AND j.worker = p_worker
    ORDER BY j.id FOR UPDATE;
    SELECT array_agg(o.id), array_agg(o.fence), array_agg(o.name), array_agg(o.key),
           array_agg(o.result)
    INTO ids, fences, types, keys, results FROM (
        SELECT j.id, j.fence, j.payload ->> 'type' AS name, j.payload ->> 'key' AS key, e AS result
        FROM jsonb_array_elements(p_results) AS e
        -- OFFSET 0: by primary key. Statistics from when nothing ran say that worker = p_worker
        -- finds next to nothing, and then the whole table is read for it (223 ms for 99 results).
        CROSS JOIN LATERAL (
            SELECT b.id, b.fence, b.worker, b.payload FROM livewell.job b
            WHERE b.id = (e ->> 'id')::bigint OFFSET 0) j
        WHERE j.fence = (e ->> 'fence')::bigint AND j.worker = p_worker
        ORDER BY j.payload ->> 'type' COLLATE "C", j.payload ->> 'key' COLLATE "C") o;
    IF EXISTS (
        SELECT FROM unnest(types, keys) AS u (name, key)
        GROUP BY u.name, u.key
        HAVING count(*) > 1) THEN
        -- Sent one by one, each is compared with the other.
        RAISE EXCEPTION 'two results for one key in one call' USING ERRCODE = '22023';
    END IF;
    PERFORM FROM unnest(types, keys) AS u (name, key)
    JOIN livewell.ledger l ON l.data_type = u.name AND l.key = u.key
    ORDER BY l.data_type, l.key FOR NO KEY UPDATE OF l;
    v_now := livewell.now();
    IF (SELECT count(*) FROM unnest(types, keys) AS u (name, key)
        JOIN livewell.ledger l ON l.data_type = u.name AND l.key = u.key)
       < coalesce(cardinality(keys), 0) THEN
        -- Somebody removed the row since the job was made; new rows are ours alone.
        INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at)
        SELECT d.name, u.key, d.upstream, v_now, v_now FROM unnest(types, keys) AS u (name, key)
        JOIN livewell.data_type d ON d.name = u.name ORDER BY d.name, u.key
        ON CONFLICT (data_type, key) DO UPDATE SET status_at = livewell.ledger.status_at;
    END IF;
    at := v_now;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.own_results IS
    'Locks the jobs and ledger rows of results, and gives the results that are still this '
    'worker''s.';
REVOKE ALL ON FUNCTION livewell.own_results FROM PUBLIC;

-- ── refresh/functions/store/refresh_reasons.sql ──
-- What follows from each reason for which an answer is not stored: {reason: {fate, ledger, fared}}.
--
-- Called by: settle_refreshes, move_ledger, change_questions, why_key.
-- The closed list is refresh/reasons.py; a test compares this with it. There: what the words mean,
-- whose fault each reason is, and what people are told.
-- fate:      of the job. ledger: what move_ledger does with the key's row. fared: how the call
--            counts for the limiter; without it the blame that came with the result decides.
-- Why one constant: it is folded into the plan of its caller, so nothing is called for each result.
-- A session that has such a plan keeps it when this list changes, until the caller is planned anew.
CREATE OR REPLACE FUNCTION livewell.refresh_reasons()
RETURNS jsonb
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN '{
        "not_json": {"fate": "retry", "ledger": "failing"},
        "not_utf8": {"fate": "retry", "ledger": "failing"},
        "html": {"fate": "retry", "ledger": "failing"},
        "error_object": {"fate": "retry", "ledger": "failing"},
        "truncated": {"fate": "retry", "ledger": "failing"},
        "too_large": {"fate": "retry", "ledger": "failing"},
        "bomb": {"fate": "retry", "ledger": "failing"},
        "too_deep": {"fate": "retry", "ledger": "failing"},
        "bad_number": {"fate": "retry", "ledger": "failing"},
        "bad_text": {"fate": "retry", "ledger": "failing"},
        "empty": {"fate": "retry", "ledger": "failing", "fared": "upstream"},
        "wrong_shape": {"fate": "retry", "ledger": "failing"},
        "content_type": {"fate": "retry", "ledger": "failing"},
        "missing_field": {"fate": "retry", "ledger": "failing"},
        "wrong_type": {"fate": "retry", "ledger": "failing"},
        "out_of_bounds": {"fate": "retry", "ledger": "failing"},
        "wrong_key": {"fate": "retry", "ledger": "failing"},
        "duplicate_row": {"fate": "retry", "ledger": "failing"},
        "no_source_time": {"fate": "retry", "ledger": "failing", "fared": "upstream"},
        "future_source": {"fate": "retry", "ledger": "failing"},
        "older": {"fate": "succeeded", "ledger": "older", "fared": "data"},
        "status": {"fate": "retry", "ledger": "failing"},
        "deadline": {"fate": "retry", "ledger": "failing"},
        "connection": {"fate": "retry", "ledger": "failing"},
        "refused_address": {"fate": "retry", "ledger": "failing"},
        "tls": {"fate": "retry", "ledger": "failing"},
        "rate_wall": {"fate": "released", "ledger": "failing", "fared": "ours"},
        "bandwidth_wall": {"fate": "released", "ledger": "failing", "fared": "wall"},
        "entitlement_key": {"fate": "cancelled", "ledger": "parked_key", "fared": "data"},
        "entitlement_type": {"fate": "cancelled", "ledger": "parked_type", "fared": "data"},
        "auth": {"fate": "retry", "ledger": "failing"},
        "suspended": {"fate": "retry", "ledger": "failing"},
        "legacy_path": {"fate": "cancelled", "ledger": "parked_type", "fared": "data"},
        "transient": {"fate": "retry", "ledger": "failing"},
        "type_changed": {"fate": "succeeded", "ledger": "due"}
    }'::pg_catalog.jsonb;
END
$$;
COMMENT ON FUNCTION livewell.refresh_reasons IS
    'The reasons for which an answer is not stored, and what follows from each.';
REVOKE ALL ON FUNCTION livewell.refresh_reasons FROM PUBLIC;

-- ── refresh/functions/store/settle_refreshes.sql ──
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

-- ── refresh/functions/store/store_refreshes.sql ──
-- Store what many refreshes brought: value, ledger, bytes and the job's end commit together, or not
-- at all. The only writer of values.
--
-- Called by: the storer of a worker, with the results of a few milliseconds. On an error of class
--            22 or 23 it sends them one by one; 40001 and 40P01 it sends again (R17).
-- Steps:     own_results (lock), settle_refreshes (judge, move the ledger, say how the job ends),
--            change_questions (how it is asked next time), store_values, count_refreshes,
--            finish_jobs.
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

-- ── refresh/functions/store/store_values.sql ──
-- Write the rows of good results into the tables of their types, a type at a time, in order of
-- name.
--
-- Called by: store_refreshes. Arrays in one order; where p_rows is NULL there is nothing to write.
-- The planner settings of store_refreshes hold here too.
-- Why the version is read again after writing: applying a type waits for our lock on its table, or
-- we wait for its. If it came first, what we have read is old: 40001, and the next try ends as
-- type_changed.
CREATE OR REPLACE FUNCTION livewell.store_values(
    p_types text[], p_keys text[], p_versions bigint[], p_rows jsonb[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type  livewell.data_type;
BEGIN
    FOR v_type IN
        SELECT d.* FROM livewell.data_type d WHERE d.name = ANY (p_types) ORDER BY d.name
    LOOP
        PERFORM livewell.write_values(v_type, w.keys, w.rows)
        FROM (
            SELECT array_agg(DISTINCT u.key) AS keys,
                   jsonb_agg(r || jsonb_build_object('key', u.key)) AS rows
            FROM unnest(p_types, p_keys, p_rows) AS u (name, key, rows)
            CROSS JOIN LATERAL jsonb_array_elements(u.rows) AS r
            WHERE u.name = v_type.name AND u.rows IS NOT NULL) w
        WHERE w.keys IS NOT NULL;
    END LOOP;
    IF EXISTS (
        SELECT FROM unnest(p_types, p_versions, p_rows) AS u (name, version, rows)
        LEFT JOIN livewell.data_type d ON d.name = u.name
        WHERE u.rows IS NOT NULL AND d.version IS DISTINCT FROM u.version) THEN
        RAISE EXCEPTION 'a type was changed while its values were written' USING ERRCODE = '40001';
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.store_values IS
    'Writes the rows of good results; raises 40001 if a type was changed meanwhile.';
REVOKE ALL ON FUNCTION livewell.store_values FROM PUBLIC;

-- ── refresh/functions/store/write_values.sql ──
-- Write the rows of some keys into the table of their type. one: one row each; set: these rows and
-- no others; series: these rows beside those that are there.
--
-- Called by: store_values; the store, in its transaction, after it has locked the ledger rows of
--            p_keys in key order. p_rows: [{"key": …, "<column>": …}, …] with every column in each.
-- The statement is made from data_type.columns, as the table is (contract 22): names by %I, values
-- never in the text. Rows that are the same already are not written again.
CREATE OR REPLACE FUNCTION livewell.write_values(
    p_type livewell.data_type, p_keys text[], p_rows jsonb)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_names     text;       -- of all columns
    v_identity  text;       -- of what tells rows apart
    v_given     text;       -- the same of the rows that are given
    v_stored    text;       -- and of those that are there
    v_changes   text;
    v_old       text;
    v_new       text;
    v_written   bigint;
BEGIN
    SELECT string_agg(format('%I', c.name), ', ' ORDER BY c.place),
           concat_ws(
               ', ', 'key',
               string_agg(format('%I', c.name), ', ' ORDER BY c.place) FILTER (WHERE c.in_key)),
        concat_ws(
            ', ', 'r.key',
            string_agg(format('r.%I', c.name), ', ' ORDER BY c.place) FILTER (WHERE c.in_key)),
        concat_ws(
            ', ', 't.key',
            string_agg(format('t.%I', c.name), ', ' ORDER BY c.place) FILTER (WHERE c.in_key)),
        string_agg(
            format('%1$I = excluded.%1$I', c.name), ', '
            ORDER BY c.place) FILTER (WHERE NOT c.in_key),
        string_agg(format('t.%I', c.name), ', ' ORDER BY c.place) FILTER (WHERE NOT c.in_key),
        string_agg(format('excluded.%I', c.name), ', ' ORDER BY c.place) FILTER (WHERE NOT c.in_key)
    INTO v_names, v_identity, v_given, v_stored, v_changes, v_old, v_new
    FROM (
        SELECT e.ordinality AS place, e.value ->> 'name' AS name,
               (e.value ->> 'key')::boolean AS in_key
        FROM jsonb_array_elements(p_type.columns) WITH ORDINALITY AS e (value, ordinality)) AS c;
    IF p_type.rows_kind = 'set' THEN
        EXECUTE format(
            'DELETE FROM livewell_data.%1$I t WHERE t.key = ANY ($1) AND NOT EXISTS (SELECT FROM '
            'jsonb_populate_recordset(NULL::livewell_data.%1$I, $2) AS r WHERE (%2$s) = (%3$s))',
            p_type.name, v_given, v_stored)
        USING p_keys, p_rows;
    END IF;
    EXECUTE format(
        'INSERT INTO livewell_data.%1$I AS t (key, %2$s) SELECT key, %2$s FROM '
        'jsonb_populate_recordset(NULL::livewell_data.%1$I, $2) WHERE key = ANY ($1) ORDER BY %3$s '
        'ON CONFLICT (%3$s) %4$s',
        p_type.name, v_names, v_identity,
        CASE
            WHEN v_changes IS NULL THEN 'DO NOTHING'
            ELSE format(
                'DO UPDATE SET %s WHERE (%s) IS DISTINCT FROM (%s)', v_changes, v_old, v_new)
        END)
    USING p_keys, p_rows;
    GET DIAGNOSTICS v_written = ROW_COUNT;
    RETURN v_written;
END
$$;
COMMENT ON FUNCTION livewell.write_values IS
    'Writes the rows of some keys into the table of their type; answers how many were new or '
    'different.';
REVOKE ALL ON FUNCTION livewell.write_values FROM PUBLIC;

-- ── refresh/functions/subscribe/answer_pairs.sql ──
-- Give each distinct pair that a session asks for its answer: unknown_type; bad_key; subscribed, if
-- the session has it already; new, as many as there is room for; capped. In the order given.
--
-- Called by: subscribe, which holds the viewer's row, as the owner and with its planner settings.
--            p_session: as session_hash answers.
-- Index:     subscription_pkey, data_type_pkey.
CREATE OR REPLACE FUNCTION livewell.answer_pairs(
    p_session uuid, p_types text[], p_keys text[], p_room integer,
    OUT types text[], OUT keys text[], OUT answers text[])
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_mine      pg_catalog.text[];      -- pairs this session has already
    v_unknown   pg_catalog.text;
BEGIN
    -- By the session alone: an index on the key would read all viewers of a popular one.
    v_mine := ARRAY(
        SELECT b.data_type || ':' || b.key FROM livewell.subscription b
        WHERE b.session_id = p_session);

    SELECT array_agg(x.type ORDER BY x.place), array_agg(x.key ORDER BY x.place),
           array_agg(x.answer ORDER BY x.place),
           max(x.type) FILTER (WHERE x.answer = 'unknown_type')
    INTO types, keys, answers, v_unknown FROM (
        SELECT g.type, g.key, g.place,
               CASE WHEN t.name IS NULL THEN 'unknown_type'
                    WHEN livewell.key_fits(t.key_pattern, g.key) IS NOT TRUE THEN 'bad_key'
                    WHEN g.type || ':' || g.key = ANY (v_mine) THEN 'subscribed'
               END AS answer
        FROM (
            SELECT u.type, u.key, min(u.place) AS place
            FROM unnest(p_types, p_keys) WITH ORDINALITY AS u (type, key, place)
            GROUP BY u.type, u.key) g
        LEFT JOIN livewell.data_type t ON t.name = g.type
        OFFSET 0) x;        -- so that each is answered once
    IF v_unknown IS NOT NULL THEN
        PERFORM livewell.warn(
            'refresh.subscribe', 'a type that does not exist was asked for', v_unknown);
    END IF;
    -- What has no answer yet is new; the cap takes the first of them.
    answers := ARRAY(
        SELECT coalesce(a.answer, CASE
            WHEN count(*) FILTER (WHERE a.answer IS NULL) OVER (ORDER BY a.place) <= p_room
            THEN 'new' ELSE 'capped' END)
        FROM unnest(answers) WITH ORDINALITY AS a (answer, place) ORDER BY a.place);
END
$$;
COMMENT ON FUNCTION livewell.answer_pairs IS
    'Says of each pair whether a session may subscribe to it, and to which it has.';
REVOKE ALL ON FUNCTION livewell.answer_pairs FROM PUBLIC;

-- ── refresh/functions/subscribe/close_session.sql ──
-- A client goes: its row, its subscriptions, and what they counted against its user.
--
-- Called by: servers and other clients. Answer: closed; unknown (no such session, or somebody
--            else's: the same answer).
-- p_user:    a user; public:<key>@<network> for somebody anonymous with a public key, whose session
--            must be of that key; NULL for somebody anonymous who is known by the id alone.
-- Locks: session, then viewer, then shares of sessions, as subscribe and sweep_sessions do.
-- user_id || '': by the id, never by the index on users, whatever the statistics say.
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.close_session(p_session uuid, p_user text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_id    pg_catalog.uuid := livewell.session_hash(p_session);
    v_key   pg_catalog.text := livewell.public_key_of(p_user);
    v_user  pg_catalog.text := coalesce(
        CASE WHEN v_key IS NULL THEN p_user END, 'session:' || v_id);
    v_n     integer;
    v_origin pg_catalog.text;
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);
    DELETE FROM livewell.viewer_session s
    WHERE s.id = v_id AND s.user_id || '' = v_user AND coalesce(s.public_key = v_key, true)
    RETURNING s.origin INTO v_origin;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    DELETE FROM livewell.subscription b WHERE b.session_id = v_id;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    UPDATE livewell.viewer w SET subscriptions = greatest(w.subscriptions - v_n, 0)
    WHERE w.user_id = v_user AND v_n > 0;
    PERFORM livewell.free_sessions(ARRAY[v_origin]);
    RETURN 'closed';
END
$$;
COMMENT ON FUNCTION livewell.close_session IS 'Ends a viewer session and everything it watched.';
REVOKE ALL ON FUNCTION livewell.close_session FROM PUBLIC;

-- ── refresh/functions/subscribe/count_all.sql ──
-- From here on, in this transaction, the owner's functions see every row of sessions and
-- subscriptions, until count_own; answers for whom the transaction acted, which count_own is to be
-- given.
--
-- Called by: count_viewers and watched_keys, which answer numbers. Nobody else may.
-- How: the policy "counted" (grants.sql) holds while livewell.counts is on and nobody is named. Who
-- sets it from outside gains nothing: whatever acts for a user names the user before it reads.
CREATE OR REPLACE FUNCTION livewell.count_all()
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_user  pg_catalog.text := coalesce(pg_catalog.current_setting('livewell.user_id', true), '');
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', '', true),
        pg_catalog.set_config('livewell.counts', 'on', true);
    RETURN v_user;
END
$$;
COMMENT ON FUNCTION livewell.count_all IS
    'Lets the owner''s counting functions see every session and subscription; answers for whom the '
    'transaction acted.';
REVOKE ALL ON FUNCTION livewell.count_all FROM PUBLIC;

-- ── refresh/functions/subscribe/count_own.sql ──
-- The end of count_all: row security holds the owner's functions to one user again.
--
-- Called by: count_viewers and watched_keys, when they have counted. After an error the transaction
--            forgets both settings by itself.
CREATE OR REPLACE FUNCTION livewell.count_own(p_user text)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM pg_catalog.set_config('livewell.counts', '', true),
        pg_catalog.set_config('livewell.user_id', p_user, true);
END
$$;
COMMENT ON FUNCTION livewell.count_own IS 'Ends what count_all began.';
REVOKE ALL ON FUNCTION livewell.count_own FROM PUBLIC;

-- ── refresh/functions/subscribe/count_viewers.sql ──
-- How many people look at a key now: distinct users with a session seen within five minutes, at
-- most 1,000 (beyond that order no longer matters).
--
-- Called by: why_key; whoever shows it; dispatch_due has the same words inside its own statement.
-- Index:     subscription_key_idx, viewer_session_pkey.
-- Compared at read time: a ghost counts for nothing even if no sweep ever runs (R3).
-- Why 2,000 rows are read: a user has at most 1,000 subscriptions, so nobody alone can hide the
-- others behind their own tabs. A key with 100,000 viewers: 110 ms without the bound, 3 ms with it.
-- Why SECURITY DEFINER: operators and readers may know how many look at a key, and not who (L4).
-- count_all lets it see everybody's rows while it counts.
-- Not for livewell_api: it counts everybody's rows, and row security holds requests to those of
-- their own user.
CREATE OR REPLACE FUNCTION livewell.count_viewers(p_type text, p_key text)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_since pg_catalog.timestamptz := v_now - interval '5 minutes';
    v_user  pg_catalog.text := livewell.count_all();
    v_n     integer;
BEGIN
    SELECT least(count(DISTINCT l.user_id), 1000) INTO v_n FROM (
        SELECT s.user_id FROM livewell.subscription s
        JOIN livewell.viewer_session v ON v.id = s.session_id
        WHERE s.data_type = p_type AND s.key = p_key AND v.seen_at > v_since LIMIT 2000) l;
    PERFORM livewell.count_own(v_user);
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.count_viewers IS 'Distinct users who look at a key now, up to 1,000.';
REVOKE ALL ON FUNCTION livewell.count_viewers FROM PUBLIC;

-- ── refresh/functions/subscribe/free_sessions.sql ──
-- These sessions of strangers are no more: count them off their public keys and addresses.
--
-- Called by: take_session, close_session and sweep_sessions. p_origins: one for each session, as
--            viewer_session has it; NULLs are users' and count for nothing.
-- Locks: after sessions and viewers; in the order of their names.
CREATE OR REPLACE FUNCTION livewell.free_sessions(p_origins text[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_names     pg_catalog.text[];
    v_counts    pg_catalog.int4[];
BEGIN
    SELECT array_agg(g.name), array_agg(g.n) INTO v_names, v_counts FROM (
        SELECT n AS "name", count(*) AS n FROM unnest(p_origins) AS o
        CROSS JOIN LATERAL unnest(ARRAY[split_part(o, ' ', 1), o]) AS n
        WHERE o IS NOT NULL GROUP BY n) g;
    IF v_names IS NULL THEN
        RETURN;
    END IF;
    PERFORM FROM livewell.session_share h
    WHERE h.name = ANY (v_names) ORDER BY h.name FOR NO KEY UPDATE;
    UPDATE livewell.session_share h SET sessions = greatest(h.sessions - g.n, 0)
    FROM unnest(v_names, v_counts) AS g ("name", n)
    WHERE h.name = g.name;
END
$$;
COMMENT ON FUNCTION livewell.free_sessions IS
    'Counts sessions that ended off what their public keys and addresses have.';
REVOKE ALL ON FUNCTION livewell.free_sessions FROM PUBLIC;

-- ── refresh/functions/subscribe/heartbeat_session.sql ──
-- A sign of life from a client. Only messages that came from the client move seen_at (R3).
--
-- Called by: open_session, touch_session, unsubscribe; servers and other clients, once a minute per
--            session; more often is answered without a write (at most one a second, F-E7).
-- p_user:    a user; public:<key>@<network> for somebody anonymous with a public key, whose session
--            must be of that key; NULL for somebody anonymous who is known by the id alone.
-- Answer:    alive; unknown (no such session, or somebody else's: the same answer).
-- A session that was silent for long may have been taken for a ghost, and its keys parked: it
-- un-parks them. From two minutes on, not five: a checker that reads the clock a moment after us
-- must not find us gone while we believed that nobody could. user_id || '': by the id, never by the
-- index on users, whatever the statistics say.
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.heartbeat_session(p_session uuid, p_user text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    -- Before the lock: seen_at only grows, and the two minutes below leave room for a wait.
    v_now   pg_catalog.timestamptz := livewell.now();
    v_id    pg_catalog.uuid := livewell.session_hash(p_session);
    v_key   pg_catalog.text := livewell.public_key_of(p_user);
    v_user  pg_catalog.text := coalesce(
        CASE WHEN v_key IS NULL THEN p_user END, 'session:' || v_id);
    v_seen  pg_catalog.timestamptz;
    v_types pg_catalog.text[];
    v_keys  pg_catalog.text[];
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);
    SELECT s.seen_at
    INTO v_seen FROM livewell.viewer_session s
    WHERE s.id = v_id AND s.user_id || '' = v_user AND coalesce(s.public_key = v_key, true);
    IF v_seen > v_now - interval '1 second' THEN
        RETURN 'alive';
    END IF;
    UPDATE livewell.viewer_session s SET seen_at = greatest(s.seen_at, v_now)
    WHERE s.id = v_id AND s.user_id || '' = v_user AND coalesce(s.public_key = v_key, true);
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    IF v_seen < v_now - interval '2 minutes' THEN
        SELECT array_agg(b.data_type), array_agg(b.key)
        INTO v_types, v_keys FROM livewell.subscription b
        WHERE b.session_id = v_id;
        PERFORM livewell.unpark(v_types, v_keys, v_now);
    END IF;
    RETURN 'alive';
END
$$;
COMMENT ON FUNCTION livewell.heartbeat_session IS
    'Keeps a viewer session alive, and un-parks its keys if it was silent for long.';
REVOKE ALL ON FUNCTION livewell.heartbeat_session FROM PUBLIC;

-- ── refresh/functions/subscribe/key_fits.sql ──
-- Whether a key is one that the type can have. Strangers' keys are checked by this before anything
-- is stored or asked for.
--
-- Called by: answer_pairs, read_through, why_key; set_ttl(), add_universe(), and whoever takes keys
--            from outside.
-- A pattern is of the small language of refresh/definition/key_pattern.py: no groups, alternatives
-- or unbounded repeats, so the time is bounded by its length and the key's.
CREATE OR REPLACE FUNCTION livewell.key_fits(p_pattern text, p_key text)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
SET search_path = ''
AS $$
    SELECT octet_length(p_key) BETWEEN 1 AND 200
        AND p_key COLLATE "C" ~ ('^(?:' || p_pattern || ')$')
$$;
COMMENT ON FUNCTION livewell.key_fits IS 'Whether the whole key matches the pattern of its type.';
REVOKE ALL ON FUNCTION livewell.key_fits FROM PUBLIC;

-- ── refresh/functions/subscribe/keys_of_sessions.sql ──
-- What these sessions are subscribed to, where that differs from what the caller knows.
--
-- Called by: the hub (refresh/push/streamed_sessions.py), when a stream opens and for all streams
--            of a process at every poll interval: a subscription may have been changed on another
--            server.
-- p_sessions: ids as clients have them; stored are their hashes.
-- p_users:   whose each must be: a user; public:<key>@<network> for somebody anonymous with a
--            public key; NULL for somebody anonymous who is known by the id alone.
-- p_known:   subs_version of each as the caller knows it; -1: nothing is known.
-- Answer:    a row for each session that changed, and one with subs_version NULL for each that is
--            gone or somebody else's: the same answer. A session that did not change is not in it.
-- Index:     viewer_session_pkey, subscription_pkey.
CREATE OR REPLACE FUNCTION livewell.keys_of_sessions(
    p_sessions uuid[], p_users text[], p_known bigint[])
RETURNS TABLE (session uuid, subs_version bigint, types text[], keys text[])
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    IF coalesce(cardinality(p_sessions), 0) > 1000
       OR cardinality(p_known) IS DISTINCT FROM cardinality(p_sessions)
       OR cardinality(p_users) IS DISTINCT FROM cardinality(p_sessions) THEN
        RAISE EXCEPTION '% sessions, % users and % versions: as many of each, and at most 1000',
            cardinality(p_sessions), cardinality(p_users), cardinality(p_known)
        USING ERRCODE = 'LW003';
    END IF;
    RETURN QUERY
    SELECT g.session, s.subs_version, coalesce(b.types, '{}'), coalesce(b.keys, '{}')
    FROM (
        SELECT u.session, u.known, u.name, livewell.session_hash(u.session) AS id,
               livewell.public_key_of(u.name) AS public_key
        FROM unnest(p_sessions, p_users, p_known) AS u (session, name, known)
        OFFSET 0) g     -- so that each is hashed once
    LEFT JOIN LATERAL (         -- one look for each, see subscribe
        SELECT v.id, v.subs_version FROM livewell.viewer_session v
        WHERE v.id = g.id
          AND v.user_id
              || '' = coalesce(CASE WHEN g.public_key IS NULL THEN g.name END, 'session:' || g.id)
          AND coalesce(v.public_key = g.public_key, true)
        OFFSET 0) s ON true
    -- Only of those that changed: at rest a look at two thousand sessions reads two thousand rows
    -- and no subscription.
    LEFT JOIN LATERAL (
        SELECT array_agg(u.data_type) AS types, array_agg(u.key) AS keys
        FROM livewell.subscription u
        WHERE u.session_id = s.id AND s.subs_version <> g.known) b ON true
    WHERE s.subs_version IS DISTINCT FROM g.known;
END
$$;
COMMENT ON FUNCTION livewell.keys_of_sessions IS
    'Subscriptions of sessions that changed since the caller last looked; sessions that are gone, '
    'or of somebody else, have no version.';
REVOKE ALL ON FUNCTION livewell.keys_of_sessions FROM PUBLIC;

-- ── refresh/functions/subscribe/load_sessions.sql ──
-- Make the stored sessions of an exchange those that are given, from the first given opening on;
-- what is older stays.
--
-- Called by: `livewell types apply` for every type that names a calendar, before the type itself
--            (refresh/registry/exchange_calendar.py reads the file that comes with the package).
-- Writes only what differs: the second time it costs a comparison.
CREATE OR REPLACE FUNCTION livewell.load_sessions(
    p_calendar text, p_opens timestamptz[], p_closes timestamptz[])
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_changed   integer;
    v_removed   integer;
BEGIN
    INSERT INTO livewell.exchange_session AS s (calendar, opens_at, closes_at)
    SELECT p_calendar, g.opens_at, g.closes_at
    FROM unnest(p_opens, p_closes) AS g (opens_at, closes_at)
    ON CONFLICT (calendar, opens_at) DO UPDATE SET closes_at = excluded.closes_at
    WHERE s.closes_at <> excluded.closes_at;
    GET DIAGNOSTICS v_changed = ROW_COUNT;
    DELETE FROM livewell.exchange_session s
    WHERE s.calendar = p_calendar AND s.opens_at >= (SELECT min(o) FROM unnest(p_opens) AS o)
      AND s.opens_at <> ALL (p_opens);
    GET DIAGNOSTICS v_removed = ROW_COUNT;
    RETURN v_changed + v_removed;
END
$$;
COMMENT ON FUNCTION livewell.load_sessions IS
    'Brings the stored sessions of one exchange up to date; answers how many rows changed.';
REVOKE ALL ON FUNCTION livewell.load_sessions FROM PUBLIC;

-- ── refresh/functions/subscribe/open_session.sql ──
-- A client comes: one heartbeat row. Its id is random and made by the caller, so a repeated call
-- has one effect. Stored is its hash (session_hash).
--
-- Called by: servers and other clients, for a user; for somebody anonymous, who then counts as one
--            viewer of their own, with public:<key>@<network>, or with NULL where no public key is
--            in play.
-- p_max:     sessions that the user may have; of somebody anonymous, that the public key may have
--            in all (take_session).
-- p_origin:  as servers before 0.7.0 name somebody anonymous: public:<key>@<network> beside a user
--            that is NULL; their keys have c_old_max sessions. Whose budget of unknown keys it
--            shares (take_cold). Stored as hashes.
-- Answer:    open; too_many (this user, public key or address has as many sessions as it may);
--            refused (the id is not free).
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.open_session(
    p_session uuid, p_user text DEFAULT NULL, p_max integer DEFAULT 1000,
    p_origin text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    c_old_max   CONSTANT pg_catalog.int4 := 10000;
    v_now       pg_catalog.timestamptz := livewell.now();
    v_id        pg_catalog.uuid := livewell.session_hash(p_session);
    v_key       pg_catalog.text := livewell.public_key_of(p_user);
    v_user      pg_catalog.text := coalesce(
        CASE WHEN v_key IS NULL THEN p_user END, 'session:' || v_id);
    v_origin    pg_catalog.text;        -- of somebody anonymous with a public key
    -- Sessions of that key.
    v_max       integer := CASE WHEN v_key IS NULL THEN c_old_max ELSE p_max END;
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);
    IF p_user LIKE 'session:%' OR octet_length(v_user) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION 'a user is named by 1 to 200 bytes that do not begin with "session:"'
        USING ERRCODE = 'LW003';
    END IF;
    IF v_user = p_user
       AND (
           SELECT count(*)
           FROM (
               SELECT FROM livewell.viewer_session s
               WHERE s.user_id = v_user AND s.id <> v_id LIMIT p_max) x) >= p_max THEN
        RETURN 'too_many';
    END IF;
    IF v_user IS DISTINCT FROM p_user THEN
        v_origin := livewell.origin_of(CASE WHEN v_key IS NULL THEN p_origin ELSE p_user END);
    END IF;
    IF v_origin IS NOT NULL AND NOT livewell.session_room(v_origin, v_max, 1)
       AND NOT EXISTS (SELECT FROM livewell.viewer_session s WHERE s.id = v_id) THEN
        RETURN 'too_many';
    END IF;
    INSERT INTO livewell.viewer_session AS s (id, seen_at, created_at, user_id, origin, public_key)
    VALUES (
        v_id, v_now, v_now, v_user, v_origin,
        CASE WHEN v_origin IS NOT NULL THEN coalesce(v_key, livewell.public_key_of(p_origin)) END)
    ON CONFLICT (id) DO NOTHING;
    IF NOT FOUND THEN
        -- It may be ours already: then this is a sign of life.
        RETURN
            CASE livewell.heartbeat_session(p_session, p_user)
                WHEN 'alive' THEN 'open'
                ELSE 'refused' END;
    END IF;
    IF v_origin IS NOT NULL AND NOT livewell.take_session(v_origin, v_max) THEN
        DELETE FROM livewell.viewer_session s WHERE s.id = v_id;
        RETURN 'too_many';
    END IF;
    RETURN 'open';
END
$$;
COMMENT ON FUNCTION livewell.open_session IS
    'Opens a viewer session under an id the caller made; the same call again changes nothing.';
REVOKE ALL ON FUNCTION livewell.open_session FROM PUBLIC;

-- ── refresh/functions/subscribe/origin_of.sql ──
-- Who a stranger is, as far as it is stored: hashes of its public key and of its network, with the
-- salt of this database, in one text with a blank between.
--
-- Called by: open_session and spend_cold_read, which run as the owner. p_origin:
--            public:<key>@<network>, as the server sees it.
CREATE OR REPLACE FUNCTION livewell.origin_of(p_origin text)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT encode(sha256(s.salt || convert_to(split_part(p_origin, '@', 1), 'UTF8')), 'hex') || ' '
        || encode(sha256(s.salt || convert_to('@' || split_part(p_origin, '@', 2), 'UTF8')), 'hex')
    FROM livewell.cold_salt s WHERE p_origin LIKE 'public:%@%'
$$;
COMMENT ON FUNCTION livewell.origin_of IS 'Hashes of a stranger''s public key and network.';
REVOKE ALL ON FUNCTION livewell.origin_of FROM PUBLIC;

-- ── refresh/functions/subscribe/public_key_of.sql ──
-- The public key of somebody anonymous, who is named public:<key>@<network> by servers; NULL for a
-- user, and for who is not named at all.
--
-- Called by: open_session, heartbeat_session, close_session, subscribe, unsubscribe,
--            keys_of_sessions.
CREATE OR REPLACE FUNCTION livewell.public_key_of(p_user text)
RETURNS text
LANGUAGE sql
IMMUTABLE STRICT PARALLEL SAFE
SET search_path = ''
AS $$
    SELECT substring(p_user FROM '^public:([^@]+)@')
$$;
COMMENT ON FUNCTION livewell.public_key_of IS 'The public key in the name of somebody anonymous.';
REVOKE ALL ON FUNCTION livewell.public_key_of FROM PUBLIC;

-- ── refresh/functions/subscribe/recount_viewers.sql ──
-- Count the viewers of the next page of an upstream's keys, due or not, and put them into their
-- class; answers where the page ended, NULL after the last one.
--
-- Called by: refresh/due/check.py, every second, by the holder of the singleton, which goes on
--            where the last page ended and begins again after the last. So a class is wrong for no
--            longer than it takes to go round: keys / p_limit seconds, 20 s for 5,000 watched keys.
--            Without it a key that waits far behind and gains a thousand viewers would go on
--            waiting as one with few (a subscription does not write the row of a key that is
--            watched already, contract 7).
-- Index:     ledger_pkey, subscription_key_idx, viewer_session_pkey.
-- Bounds:    c_rows rows of the ledger, p_limit keys that somebody is to see, and about c_looked
--            subscriptions of these.
CREATE OR REPLACE FUNCTION livewell.recount_viewers(
    p_upstream text, p_after_type text, p_after_key text, p_limit integer DEFAULT 250)
RETURNS TABLE (data_type text, key text)
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    c_rows      CONSTANT integer := 2000;
    c_looked    CONSTANT integer := 20000;
    v_now       timestamptz := livewell.now();
    v_type      text := (
        SELECT min(t.name) FROM livewell.data_type t
        WHERE t.upstream = p_upstream AND t.name >= coalesce(p_after_type, ''));
    v_after     text := CASE WHEN v_type = p_after_type THEN p_after_key END;
    v_page      record;
    v_types     text[];
BEGIN
    WITH rows AS MATERIALIZED (
        SELECT l.key, l.due_at, l.demand_class FROM livewell.ledger l
        WHERE l.data_type = v_type AND l.key > coalesce(v_after, '') ORDER BY l.key LIMIT c_rows
    ), awake AS MATERIALIZED (
        SELECT a.key, a.demand_class FROM (
            SELECT r.key, r.demand_class, row_number() OVER w AS place,
                   sum(2 ^ abs(r.demand_class)) OVER w AS looked
            FROM rows r
            WHERE r.due_at IS NOT NULL
            WINDOW w AS (ORDER BY r.key)) a
        WHERE a.place = 1 OR a.place <= p_limit AND a.looked <= c_looked
    )
    SELECT ARRAY(SELECT a.key FROM awake a ORDER BY a.key) AS keys,
           ARRAY(SELECT a.demand_class::integer FROM awake a ORDER BY a.key) AS classes,
           CASE
               WHEN (SELECT count(*) FROM awake) < (
                   SELECT count(*) FROM rows r WHERE r.due_at IS NOT NULL)
                   THEN (SELECT max(a.key) FROM awake a)
                WHEN (SELECT count(*) FROM rows) = c_rows
                    THEN (SELECT max(r.key) FROM rows r) END AS last
    INTO v_page;
    IF cardinality(v_page.keys) > 0 THEN
        v_types := array_fill(v_type, ARRAY[cardinality(v_page.keys)]);
        PERFORM livewell.classify_keys(
            v_types, v_page.keys, v_page.classes,
            livewell.viewers_of(v_types, v_page.keys, v_page.classes, 1000, v_now));
    END IF;
    data_type := v_type;
    key := v_page.last;
    IF key IS NULL THEN     -- the type is done: on with the next
        data_type := (
            SELECT min(t.name) FROM livewell.data_type t
            WHERE t.upstream = p_upstream AND t.name > v_type);
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.recount_viewers IS
    'Counts the viewers of a page of keys and corrects their class; answers where the next page '
    'begins, NULL at the end.';
REVOKE ALL ON FUNCTION livewell.recount_viewers FROM PUBLIC;

-- ── refresh/functions/subscribe/session_hash.sql ──
-- What is stored of a session's id: 128 bits of its SHA-256. The id itself is a secret of its
-- client (L4): whoever reads the tables cannot act for a session.
--
-- Called by: many functions; every function that is given a session; servers and other clients give
--            the id, and never see the hash.
-- 128 bits: an id is a uuid and has 122 random bits, more could not be guessed any worse. No salt:
-- ids are random.
CREATE OR REPLACE FUNCTION livewell.session_hash(p_session uuid)
RETURNS uuid
LANGUAGE sql
IMMUTABLE STRICT PARALLEL SAFE
SET search_path = ''
AS $$
    SELECT encode(substr(sha256(uuid_send(p_session)), 1, 16), 'hex')::pg_catalog.uuid
$$;
COMMENT ON FUNCTION livewell.session_hash IS
    'The id under which a session is stored: a hash of the one that its client has.';
REVOKE ALL ON FUNCTION livewell.session_hash FROM PUBLIC;

-- ── refresh/functions/subscribe/session_keys.sql ──
-- What these sessions are subscribed to, where that differs from what the caller knows.
--
-- Called by: hubs before 0.7.0 (keys_of_sessions has followed), when a stream opens and for all
--            streams of a process at every poll interval: a subscription may have been changed on
--            another server.
-- p_known:   subs_version of each as the caller knows it; -1: nothing is known.
-- p_sessions: ids as clients have them; stored are their hashes. Of somebody anonymous user_id is
--             what these hubs compare with: "session:" and the id that was given.
-- Answer:    a row for each session that changed, and one with subs_version NULL for each that is
--            gone. A session that did not change is not in it.
-- Index:     viewer_session_pkey, subscription_pkey.
CREATE OR REPLACE FUNCTION livewell.session_keys(p_sessions uuid[], p_known bigint[])
RETURNS TABLE (session uuid, user_id text, subs_version bigint, types text[], keys text[])
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    IF coalesce(cardinality(p_sessions), 0) > 1000
       OR cardinality(p_known) IS DISTINCT FROM cardinality(p_sessions) THEN
        RAISE EXCEPTION '% sessions and % versions: at most 1000 pairs in one call',
            cardinality(p_sessions), cardinality(p_known)
        USING ERRCODE = 'LW003';
    END IF;
    RETURN QUERY
    SELECT g.id, CASE s.user_id WHEN 'session:' || s.id THEN 'session:' || g.id ELSE s.user_id END,
           s.subs_version, coalesce(b.types, '{}'), coalesce(b.keys, '{}')
    FROM unnest(p_sessions, p_known) AS g (id, known)
    LEFT JOIN livewell.viewer_session s ON s.id = livewell.session_hash(g.id)
    -- Only of those that changed: at rest a look at two thousand sessions reads two thousand rows
    -- and no subscription.
    LEFT JOIN LATERAL (
        SELECT array_agg(u.data_type) AS types, array_agg(u.key) AS keys
        FROM livewell.subscription u
        WHERE u.session_id = s.id AND s.subs_version <> g.known) b ON true
    WHERE s.subs_version IS DISTINCT FROM g.known;
END
$$;
COMMENT ON FUNCTION livewell.session_keys IS
    'Subscriptions of sessions that changed since the caller last looked; sessions that are gone '
    'have no version.';
REVOKE ALL ON FUNCTION livewell.session_keys FROM PUBLIC;

-- ── refresh/functions/subscribe/session_room.sql ──
-- Whether a stranger's public key and address may have p_more sessions beyond those they have.
--
-- Called by: open_session, to refuse without a write and without a lock when there is no room; and
--            take_session, which holds the locks. p_origin: as origin_of answers. p_max: what the
--            key may have.
-- Shares (R3): an address may have a tenth of its key's sessions, at least one: so nobody alone can
-- use up what a page has for all its visitors.
-- Index:     session_share_pkey.
CREATE OR REPLACE FUNCTION livewell.session_room(p_origin text, p_max integer, p_more integer)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    c_share CONSTANT pg_catalog.int4 := 10;
BEGIN
    RETURN NOT EXISTS (
        SELECT FROM livewell.session_share h
        WHERE h.name = ANY (ARRAY[split_part(p_origin, ' ', 1), p_origin])
          AND h.sessions + p_more >
              CASE WHEN h.name = p_origin THEN greatest(p_max / c_share, 1) ELSE p_max END);
END
$$;
COMMENT ON FUNCTION livewell.session_room IS
    'Whether a public key and an address may have more sessions than they have.';
REVOKE ALL ON FUNCTION livewell.session_room FROM PUBLIC;

-- ── refresh/functions/subscribe/spend_cold_keys.sql ──
-- Of the keys that are new to a session, refuse those that nobody knew and for which the user's
-- budget of this minute has no room: their answer becomes cold_budget.
--
-- Called by: subscribe, which holds the user's row. read_through spends from the same budget, one
--            key at a time (spend_cold_read).
CREATE OR REPLACE FUNCTION livewell.spend_cold_keys(
    p_user text, p_max integer, p_types text[], p_keys text[], p_answers text[])
RETURNS text[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_minute    pg_catalog.timestamptz := date_trunc('minute', livewell.now());
    v_spent     integer;
    v_cold      integer;
    v_answers   pg_catalog.text[];
    v_room      integer;        -- of this user, and of the strangers it shares with
    v_wanted    integer;
    v_origin    pg_catalog.text;
BEGIN
    SELECT CASE WHEN w.cold_minute = v_minute THEN w.cold_reads ELSE 0 END
    INTO v_spent FROM livewell.viewer w
    WHERE w.user_id = p_user;
    SELECT count(*) INTO v_wanted FROM unnest(p_types, p_keys, p_answers) AS g (type, key, answer)
    -- See subscribe.
    LEFT JOIN LATERAL (
        SELECT true AS known FROM livewell.ledger x
        WHERE x.data_type = g.type AND x.key = g.key OFFSET 0) l ON true
    WHERE g.answer = 'new' AND l.known IS NULL;
    v_room := least(greatest(p_max - v_spent, 0), v_wanted);
    IF v_room > 0 AND p_user LIKE 'session:%' THEN
        SELECT s.origin
        INTO v_origin FROM livewell.viewer_session s
        WHERE s.id = substr(p_user, 9)::pg_catalog.uuid;
        v_room := livewell.take_cold(v_origin, p_max, v_room);
    END IF;
    SELECT array_agg(
        CASE WHEN x.cold AND x.nth > v_room THEN 'cold_budget' ELSE x.answer END ORDER BY x.place),
           count(*) FILTER (WHERE x.cold AND x.nth <= v_room)
    INTO v_answers, v_cold FROM (
        SELECT g.answer, g.place, c.cold,
               count(*) FILTER (WHERE c.cold) OVER (ORDER BY g.place) AS nth
        FROM unnest(p_types, p_keys, p_answers) WITH ORDINALITY AS g (type, key, answer, place),
             LATERAL (
                 SELECT g.answer = 'new'
                     AND NOT EXISTS (
                         SELECT FROM livewell.ledger l
                         WHERE l.data_type = g.type AND l.key = g.key) AS cold) c) x;
    IF v_cold > 0 THEN
        UPDATE livewell.viewer w SET cold_minute = v_minute, cold_reads = v_spent + v_cold
        WHERE w.user_id = p_user;
    END IF;
    RETURN v_answers;
END
$$;
COMMENT ON FUNCTION livewell.spend_cold_keys IS
    'Counts new subscriptions to unknown keys against the user''s budget of this minute, and '
    'refuses those beyond it.';
REVOKE ALL ON FUNCTION livewell.spend_cold_keys FROM PUBLIC;

-- ── refresh/functions/subscribe/spend_cold_read.sql ──
-- Take one of the keys that nobody knew which a user may ask for in a minute; false when they are
-- used up.
--
-- Called by: refuse_demand. The user's row is the lock; counted under it, by the minute of the
--            database's clock.
CREATE OR REPLACE FUNCTION livewell.spend_cold_read(p_user text, p_max integer)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_minute    pg_catalog.timestamptz;
    v_v         livewell.viewer;
BEGIN
    -- A stranger has no row of its own: what its address and its public key may together.
    IF p_user LIKE 'public:%@%' THEN
        RETURN livewell.take_cold(livewell.origin_of(p_user), p_max, 1) > 0;
    END IF;
    INSERT INTO livewell.viewer (user_id) VALUES (p_user) ON CONFLICT DO NOTHING;
    SELECT * INTO v_v FROM livewell.viewer v WHERE v.user_id = p_user FOR NO KEY UPDATE;
    v_minute := date_trunc('minute', livewell.now());
    IF v_v.cold_minute IS DISTINCT FROM v_minute THEN
        v_v.cold_reads := 0;
    END IF;
    IF v_v.cold_reads >= p_max THEN
        RETURN false;
    END IF;
    UPDATE livewell.viewer v SET cold_minute = v_minute, cold_reads = v_v.cold_reads + 1
    WHERE v.user_id = p_user;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.spend_cold_read IS
    'Counts a read of an unknown key against the user''s budget of this minute.';
REVOKE ALL ON FUNCTION livewell.spend_cold_read FROM PUBLIC;

-- ── refresh/functions/subscribe/subscribe.sql ──
-- A client looks at these keys: remember it, make sure that they are kept fresh from now on, and
-- say how fresh each is. Many pairs in one round trip (R3, R6).
--
-- Called by: servers and other clients.
-- p_user:    a user; public:<key>@<network> for somebody anonymous with a public key, whose session
--            must be of that key; NULL for somebody anonymous who is known by the id alone.
-- p_max:     subscriptions that one user may have; pairs beyond it are refused, in the order given.
-- p_cold_max: keys that nobody ever asked for which this user may bring up in a minute, reads
--             included; NULL: somebody trusted. Strangers cannot spend the quota on keys they make
--             up.
-- Answer:    one row per distinct pair, in the order given. answer: subscribed; unknown_type;
--            bad_key; capped; cold_budget; or, alone, unknown_session (no such session, or somebody
--            else's: the same). wanted: it is stale and not backed off, so a nudge of refresh.due
--            is worth sending.
-- Steps:     touch_session, the viewer's lock, answer_pairs (what is new), spend_cold_keys, the
--            subscriptions, unpark, judge_keys.
-- Isolation (contract 4): a type whose rule cannot be computed counts as stale, leaves a warning,
-- and changes nothing for the others; nor does a type that does not exist.
-- Locks, in this order as everywhere: session, viewer, ledger rows in key order (KEY SHARE, see
-- unpark). Counting under the viewer's lock keeps the cap under races.
-- Nothing is written per view beyond the subscription itself (contract 7): a key that is already
-- due for somebody else is only share-locked.
-- One key with 100,000 viewers: 0.6 ms a subscription on a busy machine; 16 clients at once beside
-- a due check that dispatches the key: no wait for a lock was seen (looked every 2 ms).
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.subscribe(
    p_session uuid, p_user text, p_types text[], p_keys text[], p_max integer DEFAULT 1000,
    p_cold_max integer DEFAULT NULL)
RETURNS TABLE (
    data_type text, key text, answer text, verdict text, wanted boolean, version bigint,
    status_version bigint, source_at timestamptz, fetched_at timestamptz, checked_at timestamptz,
    age_seconds float8)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_begun     pg_catalog.timestamptz := livewell.now();     -- for seen_at, which only grows
    v_now       pg_catalog.timestamptz;
    v_id        pg_catalog.uuid := livewell.session_hash(p_session);
    v_key       pg_catalog.text := livewell.public_key_of(p_user);
    v_user      pg_catalog.text := coalesce(
        CASE WHEN v_key IS NULL THEN p_user END, 'session:' || v_id);
    v_types     pg_catalog.text[];      -- distinct pairs, in the order given
    v_keys      pg_catalog.text[];
    v_answers   pg_catalog.text[];
    v_has       integer;
    v_awake     integer;
    v_new       integer;
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);
    IF coalesce(cardinality(p_keys), 0) > 1000
       OR cardinality(p_types) IS DISTINCT FROM cardinality(p_keys) THEN
        RAISE EXCEPTION '% types and % keys: at most 1000 pairs in one call', cardinality(p_types),
            cardinality(p_keys)
        USING ERRCODE = 'LW003';
    END IF;
    IF NOT livewell.touch_session(p_session, p_user, v_id, v_user, v_key, v_begun) THEN
        answer := 'unknown_session';
        RETURN NEXT;
        RETURN;
    END IF;
    INSERT INTO livewell.viewer AS w (user_id)
    VALUES (v_user) ON CONFLICT (user_id) DO UPDATE SET subscriptions = w.subscriptions
    RETURNING w.subscriptions INTO v_has;
    v_now := livewell.now();
    SELECT a.types, a.keys, a.answers INTO v_types, v_keys, v_answers
    FROM livewell.answer_pairs(v_id, p_types, p_keys, p_max - v_has) AS a;
    IF p_cold_max IS NOT NULL THEN
        v_answers := livewell.spend_cold_keys(v_user, p_cold_max, v_types, v_keys, v_answers);
    END IF;
    INSERT INTO livewell.subscription (session_id, data_type, key, user_id)
    SELECT v_id, g.type, g.key, v_user
    FROM unnest(v_types, v_keys, v_answers) AS g (type, key, answer)
    WHERE g.answer = 'new'
    ON CONFLICT (session_id, data_type, key) DO NOTHING;
    GET DIAGNOSTICS v_new = ROW_COUNT;
    IF v_new > 0 THEN
        UPDATE livewell.viewer w SET subscriptions = w.subscriptions + v_new
        WHERE w.user_id = v_user;
    END IF;
    v_answers := array_replace(v_answers, 'new', 'subscribed');
    -- A popular key is there, due and counted as watched: the lock is all it takes, and what is
    -- read with it is the row as it is after any wait. A function less, a tenth of a subscription.
    -- LATERAL: one look by primary key for each, whatever the plan was made for. A join, planned
    -- when the ledger had three rows, read 49,000 rows for each of a thousand keys: 22 s.
    SELECT count(*) FILTER (WHERE l.due_at IS NOT NULL AND l.demand_class <> 0) INTO v_awake
    FROM (
        SELECT g.type, g.key FROM unnest(v_types, v_keys, v_answers) AS g (type, key, answer)
        WHERE g.answer = 'subscribed' ORDER BY 1, 2) g
    CROSS JOIN LATERAL (
        SELECT x.due_at, x.demand_class FROM livewell.ledger x
        WHERE x.data_type = g.type AND x.key = g.key FOR KEY SHARE) l;
    IF v_awake < cardinality(array_positions(v_answers, 'subscribed')) THEN
        PERFORM livewell.unpark(array_agg(g.type), array_agg(g.key), v_now)
        FROM unnest(v_types, v_keys, v_answers) AS g (type, key, answer)
        WHERE g.answer = 'subscribed';
    END IF;

    <<together>>
    BEGIN
        RETURN QUERY SELECT * FROM livewell.judge_keys(v_types, v_keys, v_answers, v_now);
    EXCEPTION WHEN others THEN
        RETURN QUERY SELECT * FROM livewell.judge_by_type(v_types, v_keys, v_answers, v_now);
    END together;
END
$$;
COMMENT ON FUNCTION livewell.subscribe IS
    'Subscribes a session to keys, un-parks them, and answers how fresh each is.';
REVOKE ALL ON FUNCTION livewell.subscribe FROM PUBLIC;

-- ── refresh/functions/subscribe/sweep_sessions.sql ──
-- Remove sessions that were not seen for six minutes, their subscriptions, and what these counted
-- against their users.
--
-- Called by: refresh/due/check.py, every minute, until it answers less than p_limit. Nothing
--            depends on it: ghosts do not count anyway (R3).
-- Index:     viewer_session_seen_idx, subscription_pkey.
-- Why SKIP LOCKED: a session that is locked has just shown a sign of life, or is closing. Why six
-- minutes: one that comes back at the last moment finds itself still there.
-- Locks: session, then viewer rows in order, then shares of sessions. The subscriptions of a
-- deleted session cannot grow meanwhile: subscribe locks the session first (race-tested).
CREATE OR REPLACE FUNCTION livewell.sweep_sessions(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_before    timestamptz := v_now - interval '6 minutes';
    v_gone      uuid[];
    v_origins   text[];
    v_users     text[];
    v_counts    integer[];
BEGIN
    WITH gone AS (
        DELETE FROM livewell.viewer_session s
        WHERE s.id = ANY (ARRAY(
            SELECT o.id FROM livewell.viewer_session o
            WHERE o.seen_at < v_before ORDER BY o.seen_at LIMIT least(greatest(p_limit, 0), 1000)
            FOR UPDATE SKIP LOCKED))
        RETURNING s.id, s.origin
    )
    SELECT coalesce(array_agg(g.id), '{}'), array_agg(g.origin) INTO v_gone, v_origins FROM gone g;
    WITH ended AS (
        DELETE FROM livewell.subscription b WHERE b.session_id = ANY (v_gone) RETURNING b.user_id
    ), counted AS (
        SELECT e.user_id, count(*) AS n FROM ended e GROUP BY e.user_id ORDER BY e.user_id
    )
    SELECT array_agg(c.user_id), array_agg(c.n) INTO v_users, v_counts FROM counted c;
    PERFORM FROM livewell.viewer w
    WHERE w.user_id = ANY (v_users) ORDER BY w.user_id FOR NO KEY UPDATE;
    UPDATE livewell.viewer w SET subscriptions = greatest(w.subscriptions - c.n, 0)
    FROM unnest(v_users, v_counts) AS c (user_id, n)
    WHERE w.user_id = c.user_id;
    -- Rows of users who have nothing left, anonymous ones above all. Whoever subscribes at this
    -- moment waits, and makes the row anew.
    DELETE FROM livewell.viewer w
    WHERE w.user_id = ANY (v_users) AND w.subscriptions = 0
      AND coalesce(w.cold_minute < v_now - interval '5 minutes', true);
    PERFORM livewell.free_sessions(v_origins);
    RETURN cardinality(v_gone);
END
$$;
COMMENT ON FUNCTION livewell.sweep_sessions IS
    'Deletes at most p_limit sessions that are long gone; answers how many.';
REVOKE ALL ON FUNCTION livewell.sweep_sessions FROM PUBLIC;

-- ── refresh/functions/subscribe/take_cold.sql ──
-- Take up to p_wanted of the unknown keys that strangers may bring up in this minute; answers how
-- many were left to take.
--
-- Called by: spend_cold_keys and spend_cold_read, for somebody anonymous. p_origin: as origin_of
--            answers. p_max: what one user may.
-- Shares (R3, X10): an address may twice what a user may, all strangers of a public key six times:
-- so one address cannot use up what a public key has, nor one public key what others have. And when
-- more than half of what the public key has is spent, an address may have two thirds of what is
-- left in all: three addresses that take all they may leave others some (livewell.shares has the
-- same rule for streams, keys and waits).
-- With m for what an address may, k for its public key, a and f for what the one has spent and the
-- other has left, n more are allowed while a + n ≤ m · 2 · (f - n) / k.
-- Locks: after the session and the viewer, before the ledger; both rows in the order of their
-- names. Counted under the locks.
CREATE OR REPLACE FUNCTION livewell.take_cold(p_origin text, p_max integer, p_wanted integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_shares    CONSTANT pg_catalog.int4[] := '{6,2}';      -- of the public key, of the address
    v_names     pg_catalog.bytea[] := ARRAY(
        SELECT decode(n, 'hex') FROM string_to_table(p_origin, ' ') AS n);
    v_minute    pg_catalog.timestamptz;
    v_taken     integer;
    v_spent     bigint;     -- by the address
    v_left      bigint;     -- of the public key
BEGIN
    IF p_origin IS NULL OR p_wanted <= 0 THEN
        RETURN p_wanted;
    END IF;
    INSERT INTO livewell.cold_budget ("name", minute, spent) SELECT n, '-infinity', 0
    FROM unnest(v_names) AS n ORDER BY n ON CONFLICT ("name") DO NOTHING;
    PERFORM FROM livewell.cold_budget b
    WHERE b.name = ANY (v_names) ORDER BY b.name FOR NO KEY UPDATE;
    v_minute := date_trunc('minute', livewell.now());
    SELECT c_shares[1]::pg_catalog.int8 * p_max - sum(s.spent) FILTER (WHERE s.place = 1),
           sum(s.spent) FILTER (WHERE s.place = 2)
    INTO v_left, v_spent FROM (
        SELECT g.place, CASE WHEN b.minute = v_minute THEN b.spent ELSE 0 END AS spent
        FROM unnest(v_names) WITH ORDINALITY AS g ("name", place)
        JOIN livewell.cold_budget b ON b."name" = g."name") s;
    v_taken := greatest(0, least(p_wanted, v_left, c_shares[2]::pg_catalog.int8 * p_max - v_spent,
        greatest(
            (2 * c_shares[2] * v_left - c_shares[1] * v_spent) / (c_shares[1] + 2 * c_shares[2]),
            CASE WHEN v_spent = 0 THEN 1 ELSE 0 END)));
    UPDATE livewell.cold_budget b
    SET minute = v_minute, spent = CASE WHEN b.minute = v_minute THEN b.spent ELSE 0 END + v_taken
    WHERE b.name = ANY (v_names) AND v_taken > 0;
    RETURN v_taken;
END
$$;
COMMENT ON FUNCTION livewell.take_cold IS
    'Counts unknown keys against the budgets of a public key and an address; answers how many may '
    'be brought up.';
REVOKE ALL ON FUNCTION livewell.take_cold FROM PUBLIC;

-- ── refresh/functions/subscribe/take_session.sql ──
-- Count one more session of a stranger, if its public key and its address have room (session_room);
-- answers whether they had.
--
-- Called by: open_session, after it has inserted the session. p_origin: as origin_of answers.
--            p_max: what the public key may have.
-- Locks: after the session, before budgets and ledger; the key's row, then the address's, which is
-- the order of their names. Looked at after the locks, in a statement of its own.
CREATE OR REPLACE FUNCTION livewell.take_session(p_origin text, p_max integer)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    INSERT INTO livewell.session_share AS h ("name", sessions)
    VALUES (split_part(p_origin, ' ', 1), 1), (p_origin, 1)
    ON CONFLICT ("name") DO UPDATE SET sessions = h.sessions + 1;
    IF livewell.session_room(p_origin, p_max, 0) THEN
        RETURN true;
    END IF;
    PERFORM livewell.free_sessions(ARRAY[p_origin]);
    RETURN false;
END
$$;
COMMENT ON FUNCTION livewell.take_session IS
    'Counts one more session of a public key and an address; false, and nothing counted, when one '
    'of them has as many as it may.';
REVOKE ALL ON FUNCTION livewell.take_session FROM PUBLIC;

-- ── refresh/functions/subscribe/touch_session.sql ──
-- Lock the session that subscribes and count a change of what it watches; answers whether there is
-- one. It is a sign of life.
--
-- Called by: subscribe, first, as the owner and with its planner settings. p_session, p_user: as it
--            was given them; p_id, p_name, p_public_key: under which they are stored. p_begun: when
--            it began, for seen_at, which only grows.
-- Index:     viewer_session_pkey. user_id || '': see heartbeat_session.
CREATE OR REPLACE FUNCTION livewell.touch_session(
    p_session uuid, p_user text, p_id uuid, p_name text, p_public_key text, p_begun timestamptz)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    -- Seen lately: one write. After a long silence what it watched may be parked, and the heartbeat
    -- sees to that.
    UPDATE livewell.viewer_session s
    SET subs_version = s.subs_version + 1,
        seen_at = CASE
            WHEN s.seen_at > p_begun - interval '1 second' THEN s.seen_at ELSE p_begun END
    WHERE s.id = p_id AND s.user_id || '' = p_name AND coalesce(s.public_key = p_public_key, true)
      AND s.seen_at > p_begun - interval '2 minutes';
    IF NOT FOUND AND livewell.heartbeat_session(p_session, p_user) = 'alive' THEN
        UPDATE livewell.viewer_session s SET subs_version = s.subs_version + 1
        WHERE s.id = p_id AND s.user_id || '' = p_name
          AND coalesce(s.public_key = p_public_key, true);
    END IF;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.touch_session IS
    'Locks a session that changes what it watches, and keeps it alive; false when there is none.';
REVOKE ALL ON FUNCTION livewell.touch_session FROM PUBLIC;

-- ── refresh/functions/subscribe/unpark.sql ──
-- Make keys that somebody watches due again, if they are parked, and take those that nobody watched
-- (prefetched ones) out of the class of the background; keys that nobody ever asked for get their
-- row.
--
-- Called by: subscribe, and heartbeat_session for a session that was silent for long. The caller
--            has written that it watches, in this transaction, before.
-- Index:     ledger_pkey.
-- Race with parking (dispatch_due, race-tested): a key is parked by whoever holds its row FOR
-- UPDATE and counted its viewers afterwards. KEY SHARE waits for that one, and then we see the key
-- parked; or it comes first, and then the checker skips the row. Any weaker and a watched key
-- sleeps for ever. KEY SHARE does not wait for other subscribers, nor for a store.
-- Lock first, then read, then write, each in key order: two callers with overlapping keys never
-- deadlock.
-- A rule that cannot be computed counts as stale, so the key is due now (R6).
CREATE OR REPLACE FUNCTION livewell.unpark(p_types text[], p_keys text[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_row   record;
    v_due   timestamp with time zone;
    v_woken integer := 0;
BEGIN
    INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at, wanted_at)
    SELECT g.type, g.key, t.upstream, p_now, p_now, p_now
    FROM (SELECT DISTINCT u.type, u.key FROM unnest(p_types, p_keys) AS u (type, key)) g
    JOIN livewell.data_type t ON t.name = g.type
    LEFT JOIN LATERAL (
        SELECT true AS known FROM livewell.ledger x
        WHERE x.data_type = g.type AND x.key = g.key OFFSET 0) l ON true
    WHERE l.known IS NULL
    ORDER BY g.type, g.key
    ON CONFLICT (data_type, key) DO NOTHING;
    PERFORM
    FROM (
        SELECT DISTINCT u.type, u.key FROM unnest(p_types, p_keys) AS u (type, key) ORDER BY 1, 2) g
    -- See subscribe.
    CROSS JOIN LATERAL (
        SELECT FROM livewell.ledger x WHERE x.data_type = g.type AND x.key = g.key FOR KEY SHARE) l;
    FOR v_row IN
        WITH rules AS MATERIALIZED (
            -- See judge_keys.
            SELECT jsonb_populate_record(d, '{"definition": {}, "columns": []}') AS rule, d.name
            FROM livewell.data_type d
            WHERE d.name = ANY (p_types)
        )
        SELECT g.type AS data_type, g.key, t.rule, l.ledger
        FROM (SELECT DISTINCT u.type, u.key FROM unnest(p_types, p_keys) AS u (type, key)) g
        CROSS JOIN LATERAL (
            SELECT x AS ledger FROM livewell.ledger x
            WHERE x.data_type = g.type AND x.key = g.key
              AND (x.due_at IS NULL OR x.demand_class = 0)
            OFFSET 0) l
        JOIN rules t ON t.name = g.type
        ORDER BY g.type, g.key
    LOOP
        <<attempt>>
        BEGIN
            v_due := livewell.next_due(v_row.rule, v_row.ledger, p_now);
        EXCEPTION WHEN others THEN
            PERFORM livewell.warn(
                'refresh.check', v_row.data_type || ': a check failed and counted as stale',
                SQLERRM);
            v_due := p_now;
        END attempt;
        UPDATE livewell.ledger l
        SET demand_class = CASE l.demand_class WHEN 0 THEN 1 ELSE l.demand_class END,
            due_at = coalesce(l.due_at, v_due)
        WHERE l.data_type = v_row.data_type AND l.key = v_row.key
          AND (l.due_at IS NULL OR l.demand_class = 0);
        v_woken := v_woken + 1;
    END LOOP;
    RETURN v_woken;
END
$$;
COMMENT ON FUNCTION livewell.unpark IS 'Makes parked keys due again; answers how many were parked.';
REVOKE ALL ON FUNCTION livewell.unpark FROM PUBLIC;

-- ── refresh/functions/subscribe/unsubscribe.sql ──
-- A client no longer looks at these keys. Answers how many subscriptions ended; -1 when there is no
-- such session, or it is somebody else's.
--
-- Called by: servers and other clients, many pairs in one round trip. Nothing is parked here:
--            dispatch_due finds out when the key is next due.
-- p_user:    a user; public:<key>@<network> for somebody anonymous with a public key, whose session
--            must be of that key; NULL for somebody anonymous who is known by the id alone.
-- Locks: session, then viewer, as subscribe does.
-- Why SECURITY DEFINER: livewell_api has no table rights.
CREATE OR REPLACE FUNCTION livewell.unsubscribe(
    p_session uuid, p_user text, p_types text[], p_keys text[])
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_id    pg_catalog.uuid := livewell.session_hash(p_session);
    v_key   pg_catalog.text := livewell.public_key_of(p_user);
    v_user  pg_catalog.text := coalesce(
        CASE WHEN v_key IS NULL THEN p_user END, 'session:' || v_id);
    v_pairs pg_catalog.text[];
    v_n     integer;
BEGIN
    -- Row security holds us to the rows of this user.
    PERFORM pg_catalog.set_config('livewell.user_id', v_user, true);
    IF coalesce(cardinality(p_keys), 0) > 1000
       OR cardinality(p_types) IS DISTINCT FROM cardinality(p_keys) THEN
        RAISE EXCEPTION '% types and % keys: at most 1000 pairs in one call', cardinality(p_types),
            cardinality(p_keys)
        USING ERRCODE = 'LW003';
    END IF;
    IF livewell.heartbeat_session(p_session, p_user) = 'unknown' THEN
        RETURN -1;
    END IF;
    UPDATE livewell.viewer_session s SET subs_version = s.subs_version + 1
    WHERE s.id = v_id AND s.user_id || '' = v_user AND coalesce(s.public_key = v_key, true);
    IF NOT FOUND THEN
        RETURN -1;      -- swept at this moment
    END IF;
    -- By the session alone: an index on the key would read all viewers of a popular one.
    v_pairs := ARRAY(SELECT g.type || ':' || g.key FROM unnest(p_types, p_keys) AS g (type, key));
    DELETE FROM livewell.subscription b
    WHERE b.session_id = v_id AND b.data_type || ':' || b.key = ANY (v_pairs);
    GET DIAGNOSTICS v_n = ROW_COUNT;
    UPDATE livewell.viewer w SET subscriptions = greatest(w.subscriptions - v_n, 0)
    WHERE w.user_id = v_user AND v_n > 0;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.unsubscribe IS
    'Ends subscriptions of a session; answers how many there were, or -1 for an unknown session.';
REVOKE ALL ON FUNCTION livewell.unsubscribe FROM PUBLIC;

-- ── refresh/functions/subscribe/viewers_of.sql ──
-- How many people look at each of these keys now, as count_viewers counts them: distinct users with
-- a session seen within five minutes, at most 1,000.
--
-- Called by: due_candidates, recount_viewers. Index: subscription_key_idx, viewer_session_pkey.
-- p_looked:  subscriptions looked at for a key, 1 to 1,000. Where these were all present and of
--            many users, there may be more: the answer is then at least the class the key was in.
-- Where they were of few users 2,000 are looked at: a user has at most 1,000, so nobody alone can
-- hide the others behind their own tabs.
CREATE OR REPLACE FUNCTION livewell.viewers_of(
    p_types text[], p_keys text[], p_classes integer[], p_looked integer, p_now timestamptz)
RETURNS integer[]
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_since     timestamptz := p_now - interval '5 minutes';
BEGIN
    RETURN ARRAY(
        SELECT (CASE WHEN n.rows < p_looked THEN n.users
                     WHEN n.users * 2 > p_looked
                         THEN
                             CASE
                                 WHEN p_looked < 1000
                                     AND g.class <> 0 THEN greatest(n.users, 2 ^ (abs(g.class) - 1))
                                 ELSE n.users
                             END
                     ELSE (SELECT least(count(DISTINCT s.user_id), 1000) FROM (
                         SELECT b.user_id FROM livewell.subscription b
                         JOIN livewell.viewer_session v ON v.id = b.session_id
                         WHERE b.data_type = g.name AND b.key = g.key AND v.seen_at > v_since
                         LIMIT 2000) s) END)::integer
        FROM unnest(p_types, p_keys, p_classes) WITH ORDINALITY AS g (name, key, class, place)
        CROSS JOIN LATERAL (
            SELECT count(DISTINCT s.user_id) AS users, count(*) AS rows FROM (
                SELECT b.user_id FROM livewell.subscription b
                JOIN livewell.viewer_session v ON v.id = b.session_id
                WHERE b.data_type = g.name AND b.key = g.key AND v.seen_at > v_since
                LIMIT p_looked) s) n
        ORDER BY g.place);
END
$$;
COMMENT ON FUNCTION livewell.viewers_of IS
    'Distinct users who look at each of the given keys now, up to 1,000.';
REVOKE ALL ON FUNCTION livewell.viewers_of FROM PUBLIC;

-- ── refresh/functions/subscribe/watched_keys.sql ──
-- Every key that somebody looks at now, and how many do, as count_viewers counts: distinct users
-- with a session seen within five minutes, at most 1,000.
--
-- Called by: plan_groups; plan_state, which people ask for. Bound: p_limit subscriptions are looked
--            at.
-- Why SECURITY DEFINER: operators and readers may know how many look at a key, and not who (L4).
-- count_all lets it see everybody's rows while it counts.
-- Not for livewell_api, as count_viewers.
CREATE OR REPLACE FUNCTION livewell.watched_keys(p_limit integer)
RETURNS TABLE (data_type text, key text, viewers integer)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_since pg_catalog.timestamptz := v_now - interval '5 minutes';
    v_user  pg_catalog.text := livewell.count_all();
BEGIN
    RETURN QUERY
    SELECT x.data_type, x.key, least(count(*), 1000)::pg_catalog.int4 FROM (
        SELECT DISTINCT b.data_type, b.key, b.user_id
        FROM (
            SELECT b.data_type, b.key, b.user_id, b.session_id FROM livewell.subscription b
            LIMIT p_limit) b
        JOIN livewell.viewer_session s ON s.id = b.session_id
        WHERE s.seen_at > v_since) x
    GROUP BY x.data_type, x.key;
    PERFORM livewell.count_own(v_user);
END
$$;
COMMENT ON FUNCTION livewell.watched_keys IS
    'Keys that somebody looks at now, each with how many distinct users do, up to 1,000.';
REVOKE ALL ON FUNCTION livewell.watched_keys FROM PUBLIC;

-- ── refresh/grants.sql ──
-- Who may do what with the refresh engine: what each role may do with each object.
-- Re-applied when this file changes; skipped where roles cannot be created.

-- ── rights that earlier releases gave: GRANT only adds, so first what is to go ──
REVOKE EXECUTE ON FUNCTION livewell.count_viewers FROM livewell_api;
-- Until 0.7.0 these roles could read all of it.
REVOKE SELECT ON livewell.viewer_session, livewell.subscription, livewell.viewer
    FROM livewell_operate, livewell_readonly;

-- ── tables ──
-- r SELECT, a INSERT, w UPDATE, d DELETE. livewell_api has no table rights at all.
-- Everybody reads the registry and only the owner writes it (apply_upstream, apply_type), but for a
-- few columns. Operators pause and resume. Workers keep the place of a walk, and park a type that
-- the plan does not include: parked_reason is no part of the definition, and a column is narrower
-- than a function that runs as the owner.
-- Workers alone write values, and the budgets of strangers.
-- The system state counts sessions, viewers and subscriptions; its roles need to know neither which
-- keys nor which sessions are whose (L4). How many look at which key they learn from count_viewers
-- and watched_keys.
DO $tables$
DECLARE
    c_rights    CONSTANT jsonb := '{"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE"}';
    v_table     text[];                 -- its name, and the columns if not all
    v_role      text;
    v_right     text;
BEGIN
    FOR v_table, v_role, v_right IN
        SELECT string_to_array(m.name, ' ('), c.role, r FROM (VALUES
            -- table (columns)                      worker   hub      operate  readonly
            ('upstream',                              'r',     'r',     'r',     'r'),
            ('upstream (paused_at)',                  '',      '',      'w',     ''),
            ('data_type',                             'r',     'r',     'r',     'r'),
            ('data_type (cron_due_at, cron_cursor)',  'w',     '',      '',      ''),
            ('data_type (paused_at)',                 '',      '',      'w',     ''),
            ('data_type (parked_reason)',             'w',     '',      'w',     ''),
            ('universe',                              'r',     'r',     'raw',   'r'),
            ('exchange_session',                      'r',     'r',     'r',     'r'),
            ('ledger',                                'rawd',  'r',     'raw',   'r'),
            ('refresh_count',                         'rawd',  '',      'r',     'r'),
            ('viewer',                                'rawd',  '',      '',      ''),
            ('viewer_session',                        'rwd',   'r',     '',      ''),
            ('viewer_session (user_id, seen_at)',     '',      '',      'r',     'r'),
            ('subscription',                          'rd',    'r',     '',      ''),
            ('subscription (data_type)',              '',      '',      'r',     'r'),
            ('session_share',                         'rawd',  '',      '',      ''),
            ('cold_budget',                           'rawd',  '',      '',      '')
        ) AS m (name, worker, hub, operate, readonly)
        CROSS JOIN LATERAL (VALUES
            ('worker', m.worker), ('hub', m.hub), ('operate', m.operate), ('readonly', m.readonly)
        ) AS c (role, rights)
        CROSS JOIN LATERAL regexp_split_to_table(c.rights, '') AS r
        WHERE c.rights <> ''
    LOOP
        EXECUTE format(
            'GRANT %s %s ON livewell.%I TO %I', c_rights ->> v_right, '(' || v_table[2], v_table[1],
            'livewell_' || v_role);
    END LOOP;
END
$tables$;

-- ── functions ──
-- x EXECUTE. What livewell_api may call runs as the owner, see the headers; it serves viewers and
-- other clients. Of a function that is not here only the owner's functions make use.
DO $functions$
DECLARE
    v_function  text;
    v_role      text;
BEGIN
    FOR v_function, v_role IN
        SELECT m.name, c.role FROM (VALUES
            -- function              api  work hub  oper read
            -- registry
            ('add_universe',          '',  '',  '',  'x', ''),
            ('bounds_statement',      '',  'x', 'x', 'x', 'x'),
            ('bounds_widened',        '',  'x', 'x', 'x', 'x'),
            ('change_type',           '',  '',  '',  'x', ''),
            ('clear_ttl',             '',  '',  '',  'x', ''),
            ('column_bounds',         '',  'x', 'x', 'x', 'x'),
            ('column_type',           '',  'x', 'x', 'x', 'x'),
            ('compare_bounds',        '',  'x', 'x', 'x', 'x'),
            ('compare_table',         '',  'x', 'x', 'x', 'x'),
            ('create_statement',      '',  'x', 'x', 'x', 'x'),
            ('deactivate_universe',   '',  '',  '',  'x', ''),
            ('list_ttls',             '',  'x', 'x', 'x', 'x'),
            ('list_universe',         '',  'x', 'x', 'x', 'x'),
            ('pause_type',            '',  '',  '',  'x', ''),
            ('pause_upstream',        '',  '',  '',  'x', ''),
            ('redue_type',            '',  'x', '',  'x', ''),
            ('registered_type',       '',  'x', 'x', 'x', 'x'),
            ('set_ttl',               '',  '',  '',  'x', ''),
            -- subscribe
            ('close_session',         'x', 'x', '',  '',  ''),
            ('count_viewers',         '',  'x', '',  'x', 'x'),
            ('free_sessions',         '',  'x', '',  '',  ''),
            ('heartbeat_session',     'x', 'x', '',  '',  ''),
            ('key_fits',              '',  'x', 'x', 'x', 'x'),
            ('keys_of_sessions',      '',  '',  'x', '',  ''),
            ('open_session',          'x', 'x', '',  '',  ''),
            ('public_key_of',         '',  '',  'x', '',  ''),
            ('recount_viewers',       '',  'x', '',  '',  ''),
            ('session_hash',          '',  '',  'x', '',  ''),
            ('session_keys',          '',  '',  'x', '',  ''),
            ('spend_cold_read',       '',  'x', '',  '',  ''),
            ('subscribe',             'x', 'x', '',  '',  ''),
            ('sweep_sessions',        '',  'x', '',  '',  ''),
            ('take_cold',             '',  'x', '',  '',  ''),
            ('unpark',                '',  'x', '',  '',  ''),
            ('unsubscribe',           'x', 'x', '',  '',  ''),
            ('viewers_of',            '',  'x', '',  '',  ''),
            ('watched_keys',          '',  'x', '',  'x', 'x'),
            -- read
            ('is_stale',              '',  'x', 'x', 'x', 'x'),
            ('judge_keys',            '',  'x', '',  '',  ''),
            ('read_key',              'x', 'x', '',  '',  ''),
            ('read_throttle',         '',  'x', '',  '',  ''),
            ('read_through',          'x', 'x', '',  '',  ''),
            ('stale_at',              '',  'x', 'x', 'x', 'x'),
            ('verdict',               '',  'x', 'x', 'x', 'x'),
            -- due
            ('choose_refreshes',      '',  'x', '',  '',  ''),
            ('classify_keys',         '',  'x', '',  '',  ''),
            ('credential_room',       '',  'x', '',  'x', 'x'),
            ('demand_refresh',        '',  'x', '',  '',  ''),
            ('dispatch_due',          '',  'x', '',  '',  ''),
            ('dispatch_room',         '',  'x', '',  'x', 'x'),
            ('dispatch_scheduled',    '',  'x', '',  '',  ''),
            ('drop_refreshes',        '',  'x', '',  '',  ''),
            ('due_check_name',        '',  'x', '',  'x', 'x'),
            ('due_candidates',        '',  'x', '',  '',  ''),
            ('enqueue_refreshes',     '',  'x', '',  '',  ''),
            ('expected_size',         '',  'x', '',  'x', 'x'),
            ('fail_dead',             '',  'x', '',  '',  ''),
            ('key_trouble',           '',  'x', '',  'x', 'x'),
            ('list_refresh_queues',   '',  'x', '',  'x', 'x'),
            ('list_walks',            '',  'x', '',  '',  ''),
            ('may_probe',             '',  'x', '',  '',  ''),
            ('next_due',              '',  'x', 'x', 'x', 'x'),
            ('order_refreshes',       '',  'x', '',  '',  ''),
            ('park_keys',             '',  'x', '',  '',  ''),
            ('park_unwatched',        '',  'x', '',  '',  ''),
            ('plan_cron',             '',  'x', '',  '',  ''),
            ('queue_chosen',          '',  'x', '',  '',  ''),
            ('ready_keys',            '',  'x', '',  '',  ''),
            ('record_walk',           '',  'x', '',  '',  ''),
            ('walk_held',             '',  'x', '',  '',  ''),
            ('sync_walks',            '',  'x', '',  '',  ''),
            ('begin_walk',            '',  'x', '',  '',  ''),
            ('refresh_jobs',          '',  'x', '',  '',  ''),
            ('refresh_queue',         '',  'x', '',  'x', 'x'),
            ('refresh_wanted',        '',  'x', '',  '',  ''),
            ('sample_refresh',        '',  'x', '',  'x', 'x'),
            ('show_walk',             '',  'x', '',  '',  ''),
            -- store
            ('change_questions',      '',  'x', '',  '',  ''),
            ('count_refreshes',       '',  'x', '',  '',  ''),
            ('judge_refresh',         '',  'x', '',  '',  ''),
            ('move_ledger',           '',  'x', '',  '',  ''),
            ('own_results',           '',  'x', '',  '',  ''),
            ('refresh_reasons',       '',  'x', '',  'x', 'x'),
            ('settle_refreshes',      '',  'x', '',  '',  ''),
            ('store_refreshes',       '',  'x', '',  '',  ''),
            ('store_values',          '',  'x', '',  '',  ''),
            ('write_values',          '',  'x', '',  '',  ''),
            -- push
            ('changed_since',         '',  'x', 'x', '',  ''),
            ('read_readings',         '',  'x', 'x', '',  ''),
            ('read_values',           '',  'x', 'x', 'x', 'x'),
            ('verdict_turns_at',      '',  'x', 'x', 'x', 'x'),
            -- operate
            ('plan_groups',           '',  'x', '',  'x', 'x'),
            ('plan_state',            '',  'x', '',  'x', 'x'),
            ('plan_types',            '',  'x', '',  'x', 'x'),
            ('plan_upstreams',        '',  'x', '',  'x', 'x'),
            ('prune_refresh',         '',  'x', '',  '',  ''),
            ('state_refresh',         '',  'x', '',  'x', 'x'),
            ('why_key',               '',  'x', '',  'x', 'x'),
            ('why_refresh',           '',  'x', '',  'x', 'x')
        ) AS m (name, api, worker, hub, operate, readonly)
        CROSS JOIN LATERAL (VALUES
            ('api', m.api), ('worker', m.worker), ('hub', m.hub), ('operate', m.operate),
            ('readonly', m.readonly)
        ) AS c (role, granted)
        WHERE c.granted = 'x'
    LOOP
        EXECUTE format(
            'GRANT EXECUTE ON FUNCTION livewell.%I TO %I', v_function, 'livewell_' || v_role);
    END LOOP;
END
$functions$;

-- ── the data: one table per type ──
REVOKE ALL ON SCHEMA livewell_data FROM PUBLIC;
GRANT USAGE ON SCHEMA livewell_data
    TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner IN SCHEMA livewell_data
    GRANT SELECT ON TABLES TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner IN SCHEMA livewell_data
    GRANT INSERT, UPDATE, DELETE ON TABLES TO livewell_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA livewell_data
    TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA livewell_data TO livewell_worker;

-- ── row security ──
-- Functions that run as the owner see and write the rows of one user, the one they were called for,
-- whatever their own words say. Whoever is a login of their own and a member of
-- the owner could switch this off, so it does not hold them; a superuser it never holds. Roles that
-- serve everybody (workers, the hub, operators) see all rows, and may do with them what is granted
-- above. A migration of these rows has to run as a login, not as livewell_owner.
DO $rows$
DECLARE
    v_table     text;
    v_policy    text;
    v_role      text;
    v_using     text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['viewer', 'viewer_session', 'subscription'] LOOP
        IF NOT (
            SELECT c.relrowsecurity AND c.relforcerowsecurity FROM pg_catalog.pg_class c
            WHERE c.oid = pg_catalog.to_regclass('livewell.' || v_table)) THEN
            EXECUTE format('ALTER TABLE livewell.%I ENABLE ROW LEVEL SECURITY', v_table);
            EXECUTE format('ALTER TABLE livewell.%I FORCE ROW LEVEL SECURITY', v_table);
        END IF;
        FOR v_policy, v_role, v_using IN VALUES
            ('own', 'livewell_owner',
             $$user_id = nullif(current_setting('livewell.user_id', true), '')$$),
            ('owner_login', 'livewell_owner', $$current_user <> 'livewell_owner'$$),
            ('worker', 'livewell_worker', 'true'),
            ('operate', 'livewell_operate', 'true'),
            ('hub', 'livewell_hub', 'true'),
            ('readonly', 'livewell_readonly', 'true')
        LOOP
            -- One per role, and only what is missing: a role that was lost took its policy along.
            IF NOT EXISTS (
                SELECT FROM pg_catalog.pg_policy p
                WHERE p.polrelid = pg_catalog.to_regclass('livewell.' || v_table)
                  AND p.polname = v_policy) THEN
                EXECUTE format(
                    'CREATE POLICY %I ON livewell.%I TO %I USING (%s)', v_policy, v_table, v_role,
                    v_using);
            END IF;
        END LOOP;
        -- Functions that only count see everybody's rows: livewell.counts is on while they count
        -- (count_all). Who sets it outside gains nothing, for whatever acts for a user names the
        -- user before it reads, and then this does not hold.
        IF v_table <> 'viewer'
           AND NOT EXISTS (
               SELECT FROM pg_catalog.pg_policy p
               WHERE p.polrelid = pg_catalog.to_regclass('livewell.' || v_table)
                 AND p.polname = 'counted') THEN
            EXECUTE format(
                'CREATE POLICY counted ON livewell.%I FOR SELECT TO livewell_owner USING (%s)',
                v_table,
                $$current_setting('livewell.counts', true) = 'on'$$
                || $$ AND coalesce(current_setting('livewell.user_id', true), '') = ''$$);
        END IF;
    END LOOP;
END
$rows$;

-- ── alerts/001_tables.sql ──
-- Alerts: what is wrong now (alert), when it went wrong (alert_firing), whom to tell (alert_channel), what was told (notification) and how often it was tried (notification_attempt).
-- Rules reach all this through observe_alerts() alone. Never edited after release; changes are a new numbered file.

CREATE TYPE livewell.alert_state AS ENUM (
    'armed',        -- the condition does not hold; the next time it does, the alert fires
    'fired',        -- the condition holds; everybody is told once
    'cooling'       -- it does not hold any more, but not yet for long enough: if it comes back now, that is the same firing
);
COMMENT ON TYPE livewell.alert_state IS 'States of an alert (R23).';

-- One row per rule: the lock under which its alerts move.
CREATE TABLE livewell.alert_rule (
    name            text COLLATE "C" PRIMARY KEY,
    level           text COLLATE "C" NOT NULL,          -- P0: wake somebody; P1: today; P2: this week
    hysteresis      interval    NOT NULL,               -- how long its condition must be gone before it may fire again
    evaluated_at    timestamptz,                        -- when it last gave an answer
    failed_at       timestamptz,                        -- when it last gave none
    error           text,                               -- and why
    CONSTRAINT alert_rule_name_check CHECK (name ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    CONSTRAINT alert_rule_level_check CHECK (level IN ('P0', 'P1', 'P2')),
    CONSTRAINT alert_rule_hysteresis_check CHECK (hysteresis >= interval '0' AND hysteresis <= interval '30 days')
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.alert_rule IS 'Rules that were ever evaluated; a rule''s row is the lock under which its alerts move.';

CREATE TABLE livewell.alert (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    firings         bigint      NOT NULL DEFAULT 0,
    firing_id       bigint,                             -- the latest
    fired_at        timestamptz,                        -- of the latest firing
    held_at         timestamptz,                        -- when the condition was last seen to hold
    clear_since     timestamptz,                        -- while it cools
    rule            text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL,          -- what it is about: a queue, a type, a limiter
    state           livewell.alert_state NOT NULL,
    level           text COLLATE "C" NOT NULL,
    summary         text        NOT NULL,               -- one sentence, as it was last seen
    CONSTRAINT alert_subject_key UNIQUE (rule, subject),
    CONSTRAINT alert_state_check CHECK ((state = 'cooling') = (clear_since IS NOT NULL)),
    CONSTRAINT alert_text_check CHECK (octet_length(subject) BETWEEN 1 AND 1200 AND char_length(summary) <= 500)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.alert IS 'One row per rule and subject that ever fired: armed, fired or cooling.';

CREATE TABLE livewell.alert_firing (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fired_at        timestamptz NOT NULL,
    ended_at        timestamptz,                        -- when it was armed again
    rule            text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL,
    level           text COLLATE "C" NOT NULL,
    summary         text        NOT NULL                -- as it was when it fired: what people are told
);
COMMENT ON TABLE livewell.alert_firing IS 'One row per firing, from the moment a condition is seen to the moment it has been gone for long enough.';
CREATE INDEX alert_firing_fired_idx ON livewell.alert_firing (fired_at);
CREATE INDEX alert_firing_subject_idx ON livewell.alert_firing (rule, subject, id);

-- No secret is stored: an address is a name in the environment of whoever sends.
CREATE TABLE livewell.alert_channel (
    name            text COLLATE "C" PRIMARY KEY,
    kind            text COLLATE "C" NOT NULL,
    source          text COLLATE "C" NOT NULL,          -- where the address is to be found: env:NAME
    level           text COLLATE "C" NOT NULL,          -- the least urgent level it is told of
    repeats         boolean     NOT NULL,               -- whether the receiver drops what it had before, so that an unknown outcome may be sent again
    since           timestamptz NOT NULL,               -- firings from before are not its
    quiet_until     timestamptz,                        -- the receiver asked for silence
    disabled_at     timestamptz,                        -- the receiver is gone (410); until somebody enables it again
    CONSTRAINT alert_channel_name_check CHECK (name ~ '^[a-z][a-z0-9_-]{0,31}$'),
    CONSTRAINT alert_channel_kind_check CHECK (kind IN ('webhook', 'discord', 'apprise')),
    CONSTRAINT alert_channel_source_check CHECK (source ~ '^env:[A-Za-z_][A-Za-z0-9_]{0,99}$'),
    CONSTRAINT alert_channel_level_check CHECK (level IN ('P0', 'P1', 'P2'))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.alert_channel IS 'Whom to tell. The row is the lock under which one notification after the other is begun.';

CREATE TYPE livewell.notification_state AS ENUM (
    'waiting',      -- nothing has arrived: not tried yet, or refused for now
    'pending',      -- an attempt is under way
    'sent',         -- the receiver said yes
    'refused',      -- the receiver, or our own guard, said no for good; or it was tried too often, or for too long
    'unknown'       -- it may have arrived, and is not sent again
);
COMMENT ON TYPE livewell.notification_state IS 'What became of telling one channel of one firing.';

CREATE TABLE livewell.notification (
    firing_id       bigint      NOT NULL REFERENCES livewell.alert_firing ON DELETE CASCADE,
    next_at         timestamptz NOT NULL,               -- not before this
    settled_at      timestamptz,
    attempts        smallint    NOT NULL DEFAULT 0,
    message_id      uuid        NOT NULL DEFAULT gen_random_uuid(),     -- the same in every attempt: by it a receiver knows a repetition
    state           livewell.notification_state NOT NULL DEFAULT 'waiting',
    channel         text COLLATE "C" NOT NULL,
    CONSTRAINT notification_pkey PRIMARY KEY (firing_id, channel)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.notification IS 'One row per firing and channel: sent once, or why not.';
CREATE INDEX notification_next_idx ON livewell.notification (channel, next_at) WHERE state = 'waiting';

CREATE TYPE livewell.attempt_outcome AS ENUM (
    'pending',      -- recorded, and perhaps sent: committed before the first byte leaves
    'sent',
    'refused',      -- certainly not delivered
    'unknown'       -- sent, and no answer came; or whoever sent it is gone
);
COMMENT ON TYPE livewell.attempt_outcome IS 'How one attempt to send a notification ended.';

CREATE TABLE livewell.notification_attempt (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,      -- whoever settles an attempt has its number
    firing_id       bigint      NOT NULL,
    started_at      timestamptz NOT NULL,
    lease_until     timestamptz NOT NULL,               -- then nobody is believed to be sending it any more
    ended_at        timestamptz,
    status          smallint,                           -- of the HTTP answer
    outcome         livewell.attempt_outcome NOT NULL DEFAULT 'pending',
    channel         text COLLATE "C" NOT NULL,
    detail          text,                               -- in our own words: never the address, never what the receiver wrote
    CONSTRAINT notification_attempt_of_fkey FOREIGN KEY (firing_id, channel) REFERENCES livewell.notification ON DELETE CASCADE,
    CONSTRAINT notification_attempt_detail_check CHECK (char_length(detail) <= 300)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.notification_attempt IS 'The attempt ledger: a row is committed before anything is sent.';
CREATE INDEX notification_attempt_of_idx ON livewell.notification_attempt (firing_id, channel);
CREATE INDEX notification_attempt_pending_idx ON livewell.notification_attempt (lease_until) WHERE outcome = 'pending';

-- "For 30 minutes": what each evaluation saw, as one row per unbroken run of evaluations that saw the same.
CREATE TABLE livewell.alert_lasting (
    rule            text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL,
    since           timestamptz NOT NULL,               -- the first evaluation of the run
    seen_at         timestamptz NOT NULL,               -- the latest
    CONSTRAINT alert_lasting_pkey PRIMARY KEY (rule, subject)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.alert_lasting IS 'Since when a condition has been seen at every evaluation; evaluations that were missed end the run.';

REVOKE ALL ON TYPE livewell.alert_state, livewell.notification_state, livewell.attempt_outcome FROM PUBLIC;

-- ── alerts/functions/begin_attempt.sql ──
-- Take the next notification of a channel and record that we are about to send it. The caller
-- commits, and only then sends.
--
--     waiting ──begin──▶ pending ──sent──▶ sent
--        ▲                  ├──refused for now──▶ waiting, later
--        │                  ├──refused for good, too often or too long──▶ refused
--        │                  └──unknown──▶ unknown
--        └──── if the receiver drops repetitions ┘
--
-- Called by: alerts/deliver.py, again and again until it answers nothing.
-- Index:     notification_next_idx.
-- Lock:      the channel's row, first: senders take turns, and whoever comes after an answer "be
--            quiet" has read it.
-- The most urgent first, then the oldest. What is older than a day helps nobody any more and is
-- refused.
CREATE OR REPLACE FUNCTION livewell.begin_attempt(p_channel text, p_lease_seconds float8)
RETURNS TABLE (
    attempt_id bigint, message_id uuid, attempt integer, rule text, subject text, level text,
    summary text, fired_at timestamptz, started_at timestamptz
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now       timestamptz;
    v_channel   livewell.alert_channel;
    v_firing    bigint;
BEGIN
    SELECT * INTO v_channel FROM livewell.alert_channel c WHERE c.name = p_channel FOR UPDATE;
    v_now := livewell.now();
    IF v_channel.name IS NULL OR v_channel.disabled_at IS NOT NULL OR v_channel.quiet_until > v_now
    THEN
        RETURN;
    END IF;
    WITH late AS (
        UPDATE livewell.notification n
        SET state = 'refused', settled_at = v_now
        FROM livewell.alert_firing f
        WHERE n.channel = p_channel
            AND n.state = 'waiting'
            AND f.id = n.firing_id
            AND f.fired_at < v_now - interval '1 day'
        RETURNING n.firing_id
    )
    SELECT count(*) INTO v_firing FROM late;
    IF v_firing > 0 THEN
        PERFORM livewell.warn(
            'alerts', 'a notification could not be delivered within a day', p_channel
        );
    END IF;
    SELECT n.firing_id INTO v_firing
    FROM livewell.notification n JOIN livewell.alert_firing f ON f.id = n.firing_id
    WHERE n.channel = p_channel AND n.state = 'waiting' AND n.next_at <= v_now
    ORDER BY f.level, n.firing_id LIMIT 1
    FOR UPDATE OF n SKIP LOCKED;
    IF v_firing IS NULL THEN
        RETURN;
    END IF;
    UPDATE livewell.notification n
    SET state = 'pending', attempts = n.attempts + 1
    WHERE n.firing_id = v_firing AND n.channel = p_channel;
    RETURN QUERY
    WITH begun AS (
        INSERT INTO livewell.notification_attempt (firing_id, channel, started_at, lease_until)
        VALUES (v_firing, p_channel, v_now, v_now + p_lease_seconds * interval '1 second')
        RETURNING id
    )
    SELECT b.id, n.message_id, n.attempts::integer, f.rule, f.subject, f.level, f.summary,
        f.fired_at, v_now
    FROM begun b
    CROSS JOIN livewell.notification n
    JOIN livewell.alert_firing f ON f.id = n.firing_id
    WHERE n.firing_id = v_firing AND n.channel = p_channel;
END
$$;
COMMENT ON FUNCTION livewell.begin_attempt IS
    'Records an attempt to send the next notification of a channel, and answers what to send.';
REVOKE ALL ON FUNCTION livewell.begin_attempt FROM PUBLIC;

-- ── alerts/functions/declare_channels.sql ──
-- Make the channels known that the settings of a sender name, and make one notification of each
-- firing for each of them.
--
-- Called by: alerts/deliver.py, at the beginning of each turn. p_channels: [{name, kind, source,
--            level, repeats}], at most 20.
-- Which firings: those of its level from the hour before it was first named on, so that what fired
-- while a deployment was still starting is told, and last year's is not; and none that is older
-- than a day.
-- Index:     alert_firing_fired_idx, notification_pkey. Bounded by p_limit firings per channel and
--            turn.
-- A channel whose kind or source changes is another one: what its old receiver had asked for
-- (silence, never again) does not hold for the new one.
CREATE OR REPLACE FUNCTION livewell.declare_channels(p_channels jsonb, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_made  integer;
BEGIN
    IF jsonb_array_length(p_channels) > 20 THEN
        RAISE EXCEPTION '% channels; 20 are allowed', jsonb_array_length(p_channels)
            USING ERRCODE = 'LW003';
    END IF;
    INSERT INTO livewell.alert_channel AS c (name, kind, source, level, repeats, since)
    SELECT g.name, g.kind, g.source, g.level, g.repeats, v_now - interval '1 hour'
    FROM jsonb_to_recordset(p_channels) AS g (
        name text, kind text, source text, level text, repeats boolean
    )
    ORDER BY g.name
    ON CONFLICT (name)
    DO UPDATE SET kind = excluded.kind, source = excluded.source, level = excluded.level,
        repeats = excluded.repeats,
        quiet_until = CASE
            WHEN (c.kind, c.source) = (excluded.kind, excluded.source) THEN c.quiet_until
        END,
        disabled_at = CASE
            WHEN (c.kind, c.source) = (excluded.kind, excluded.source) THEN c.disabled_at
        END
    WHERE (c.kind, c.source, c.level, c.repeats) <> (
        excluded.kind, excluded.source, excluded.level, excluded.repeats
    );

    INSERT INTO livewell.notification (firing_id, channel, next_at)
    SELECT f.id, c.name, v_now
    FROM livewell.alert_channel c
    CROSS JOIN LATERAL (
        SELECT o.id FROM livewell.alert_firing o
        WHERE o.fired_at >= greatest(c.since, v_now - interval '1 day')
            AND o.level <= c.level
            AND NOT EXISTS (
                SELECT FROM livewell.notification n WHERE n.firing_id = o.id AND n.channel = c.name
            )
        ORDER BY o.fired_at, o.id LIMIT p_limit
    ) f
    WHERE c.name IN (SELECT g ->> 'name' FROM jsonb_array_elements(p_channels) AS g)
    ORDER BY f.id, c.name
    ON CONFLICT (firing_id, channel) DO NOTHING;
    GET DIAGNOSTICS v_made = ROW_COUNT;
    RETURN v_made;
END
$$;
COMMENT ON FUNCTION livewell.declare_channels IS
    'Declares channels and makes the notifications of new firings; answers how many.';
REVOKE ALL ON FUNCTION livewell.declare_channels FROM PUBLIC;

-- ── alerts/functions/enable_channel.sql ──
-- Let a channel send again that was disabled because its receiver was gone, or that was told to be
-- quiet.
--
-- Called by: CLI `alerts enable`.
CREATE OR REPLACE FUNCTION livewell.enable_channel(p_channel text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.alert_channel c
    SET disabled_at = NULL, quiet_until = NULL
    WHERE c.name = p_channel;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.enable_channel IS
    'Enables a channel; false when there is none of that name.';
REVOKE ALL ON FUNCTION livewell.enable_channel FROM PUBLIC;

-- ── alerts/functions/expire_attempts.sql ──
-- Attempts whose sender was not heard of again: it may have been killed before it sent, or after.
-- Nobody knows, so that is what is recorded.
--
-- Called by: alerts/deliver.py, at the beginning of each turn.
-- Index:     notification_attempt_pending_idx.
-- One after the other in the order of channels: settle_attempt locks a channel each, and two that
-- lock many must do it in the same order.
CREATE OR REPLACE FUNCTION livewell.expire_attempts(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_id    bigint;
    v_n     integer := 0;
BEGIN
    FOR v_id IN
        SELECT a.id FROM livewell.notification_attempt a
        WHERE a.outcome = 'pending' AND a.lease_until < v_now
        ORDER BY a.channel, a.id LIMIT p_limit
    LOOP
        PERFORM livewell.settle_attempt(v_id, 'unknown', NULL, 'its sender was not heard of again');
        v_n := v_n + 1;
    END LOOP;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.expire_attempts IS
    'Turns attempts whose lease has run out into unknown ones; answers how many.';
REVOKE ALL ON FUNCTION livewell.expire_attempts FROM PUBLIC;

-- ── alerts/functions/lasting.sql ──
-- For which of these subjects a condition has been seen at every evaluation for at least so long.
--
-- Called by: rule_calls_near_limit, rule_queue_deep, rule_queue_stalled, rule_type_silent,
--            rule_upstream_silent, rule_watched_not_fresh; rules with "for 30 minutes", once per
--            evaluation, with all subjects for which the condition holds now, the rule's row locked
--            (evaluate_rule).
-- p_gap:     how long nobody may have looked: what happened meanwhile is not known, so the run
--            begins anew.
-- Bounded:   one row per subject; subjects that are not given lose theirs.
CREATE OR REPLACE FUNCTION livewell.lasting(
    p_rule text,
    p_subjects text[],
    p_for interval,
    p_now timestamptz,
    p_gap interval DEFAULT interval '5 minutes'
)
RETURNS TABLE (subject text, since timestamptz)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM livewell.alert_lasting l WHERE l.rule = p_rule AND l.subject <> ALL (p_subjects);
    INSERT INTO livewell.alert_lasting AS l (rule, subject, since, seen_at)
    SELECT DISTINCT p_rule, g, p_now, p_now FROM unnest(p_subjects) AS g
    ORDER BY g
    ON CONFLICT (rule, subject)
    DO UPDATE SET since = CASE WHEN l.seen_at < p_now - p_gap THEN p_now ELSE l.since END,
        seen_at = greatest(l.seen_at, p_now);
    RETURN QUERY
    SELECT l.subject, l.since FROM livewell.alert_lasting l
    WHERE l.rule = p_rule AND l.since <= p_now - p_for;
END
$$;
COMMENT ON FUNCTION livewell.lasting IS
    'Remembers for which subjects a condition holds, and answers those for which it has held for '
    'long enough.';
REVOKE ALL ON FUNCTION livewell.lasting FROM PUBLIC;

-- ── alerts/functions/list_alerts.sql ──
-- Alerts by number, each with what became of telling people of its latest firing.
--
-- Called by: CLI `alerts list`, GET /v1/alerts.
-- p_state: armed, fired, cooling; NULL: all but the armed ones, which is what is wrong now. 'all':
--          every one.
CREATE OR REPLACE FUNCTION livewell.list_alerts(p_state text, p_after bigint, p_limit integer)
RETURNS TABLE (
    id bigint, rule text, subject text, level text, state text, summary text, fired_at timestamptz,
    held_at timestamptz, clear_since timestamptz, firings bigint, waiting bigint, sent bigint,
    refused bigint, unknown bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT a.id, a.rule, a.subject, a.level, a.state::text, a.summary, a.fired_at, a.held_at,
        a.clear_since, a.firings, n.waiting, n.sent, n.refused, n.unknown
    FROM livewell.alert a
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE o.state IN ('waiting', 'pending')) AS waiting,
            count(*) FILTER (WHERE o.state = 'sent') AS sent,
            count(*) FILTER (WHERE o.state = 'refused') AS refused,
            count(*) FILTER (WHERE o.state = 'unknown') AS unknown
        FROM livewell.notification o
        WHERE o.firing_id = a.firing_id
    ) n
    WHERE a.id > p_after
        AND (p_state = 'all' OR p_state IS NULL AND a.state <> 'armed' OR a.state::text = p_state)
    ORDER BY a.id LIMIT least(p_limit, 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_alerts IS
    'A page of alerts with the outcome of their latest notifications.';
REVOKE ALL ON FUNCTION livewell.list_alerts FROM PUBLIC;

-- ── alerts/functions/list_attempts.sql ──
-- Of one alert: its latest firings, and for each channel what was tried.
--
-- Called by: CLI `alerts show`. One row per attempt, or one without where nothing has been tried;
--            newest firing first, 20 firings at most.
-- Index:     alert_firing_subject_idx, notification_pkey, notification_attempt_of_idx.
CREATE OR REPLACE FUNCTION livewell.list_attempts(p_alert bigint)
RETURNS TABLE (
    firing_id bigint, fired_at timestamptz, ended_at timestamptz, summary text, channel text,
    state text, attempts integer, next_at timestamptz, attempt_at timestamptz, outcome text,
    status integer, detail text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT f.id, f.fired_at, f.ended_at, f.summary, n.channel, n.state::text, n.attempts::integer,
        CASE WHEN n.state = 'waiting' THEN n.next_at END, t.started_at, t.outcome::text,
        t.status::integer, t.detail
    FROM livewell.alert a
    CROSS JOIN LATERAL (
        SELECT * FROM livewell.alert_firing o
        WHERE o.rule = a.rule AND o.subject = a.subject
        ORDER BY o.id DESC LIMIT 20
    ) f
    LEFT JOIN livewell.notification n ON n.firing_id = f.id
    LEFT JOIN livewell.notification_attempt t ON t.firing_id = n.firing_id AND t.channel = n.channel
    WHERE a.id = p_alert
    ORDER BY f.id DESC, n.channel, t.id LIMIT 1000;
END
$$;
COMMENT ON FUNCTION livewell.list_attempts IS
    'The firings of an alert, and every attempt to tell somebody of them.';
REVOKE ALL ON FUNCTION livewell.list_attempts FROM PUBLIC;

-- ── alerts/functions/observe_alerts.sql ──
-- Tell the alerts of one rule what is so now: for these subjects its condition holds, for all
-- others it does not.
--
--     armed ──holds──▶ fired ──holds no more──▶ cooling ──for the rule's hysteresis──▶ armed
--                        ▲──────holds again─────────┘ the same firing: nobody is told again
--
-- Called by: evaluate_rule (operations), and whoever else has a condition that people should be
--            told of. A firing is one row; deliver() makes one notification of it per channel.
-- Index:     alert_subject_key.
-- Two evaluators at once: the rule's row is locked first and the alerts are read in later
-- statements, so the second sees what the first has fired.
CREATE OR REPLACE FUNCTION livewell.observe_alerts(
    p_rule text, p_level text, p_hysteresis interval, p_subjects text[], p_summaries text[]
)
RETURNS TABLE (fired integer, cooled integer, rearmed integer)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_now   timestamptz;
BEGIN
    IF cardinality(p_subjects) > 1000 OR cardinality(p_subjects) <> cardinality(p_summaries) THEN
        RAISE EXCEPTION 'rule %: % subjects and % summaries; as many of each, and at most 1000',
            p_rule, cardinality(p_subjects), cardinality(p_summaries)
            USING ERRCODE = 'LW003';
    END IF;
    -- Names come from outside, and are told to channels (L10): redacted before anything is
    -- compared, so that an alert is one whatever its secret part.
    p_subjects := ARRAY(
        SELECT livewell.redact(g.subject)
        FROM unnest(p_subjects) WITH ORDINALITY AS g (subject, place)
        ORDER BY g.place
    );
    INSERT INTO livewell.alert_rule (name, level, hysteresis)
    VALUES (p_rule, p_level, p_hysteresis)
    ON CONFLICT (name) DO NOTHING;
    PERFORM FROM livewell.alert_rule r WHERE r.name = p_rule FOR UPDATE;
    v_now := livewell.now();
    UPDATE livewell.alert_rule r
    SET level = p_level, hysteresis = p_hysteresis, evaluated_at = v_now
    WHERE r.name = p_rule;

    -- Gone for long enough: it may fire again, with the next evaluation at the earliest.
    WITH armed AS (
        UPDATE livewell.alert a
        SET state = 'armed', clear_since = NULL
        WHERE a.rule = p_rule
            AND a.state = 'cooling'
            AND a.clear_since <= v_now - p_hysteresis
            AND a.subject <> ALL (p_subjects)
        RETURNING a.firing_id
    ),
    ended AS (
        UPDATE livewell.alert_firing f SET ended_at = v_now FROM armed WHERE f.id = armed.firing_id
    )
    SELECT count(*) INTO rearmed FROM armed;

    UPDATE livewell.alert a SET state = 'cooling', clear_since = v_now
    WHERE a.rule = p_rule AND a.state = 'fired' AND a.subject <> ALL (p_subjects);
    GET DIAGNOSTICS cooled = ROW_COUNT;

    -- It holds, still or again.
    UPDATE livewell.alert a
    SET state = 'fired', clear_since = NULL, held_at = v_now, level = p_level,
        summary = left(livewell.redact(g.summary), 500)
    FROM unnest(p_subjects, p_summaries) AS g (subject, summary)
    WHERE a.rule = p_rule AND a.subject = g.subject AND a.state <> 'armed';

    -- New, or armed: it fires.
    WITH given AS (
        SELECT DISTINCT ON (g.subject) g.subject, left(livewell.redact(g.summary), 500) AS summary
        FROM unnest(p_subjects, p_summaries) AS g (subject, summary)
        ORDER BY g.subject, g.summary
    ),
    firing AS (
        INSERT INTO livewell.alert_firing (fired_at, rule, subject, level, summary)
        SELECT v_now, p_rule, g.subject, p_level, g.summary FROM given g
        WHERE NOT EXISTS (
            SELECT FROM livewell.alert a
            WHERE a.rule = p_rule AND a.subject = g.subject AND a.state <> 'armed'
        )
        ORDER BY g.subject
        RETURNING alert_firing.id, alert_firing.subject, alert_firing.summary
    ),
    alert AS (
        INSERT INTO livewell.alert AS a (
            rule, subject, state, level, summary, firings, firing_id, fired_at, held_at
        )
        SELECT p_rule, f.subject, 'fired', p_level, f.summary, 1, f.id, v_now, v_now FROM firing f
        ON CONFLICT (rule, subject)
        DO UPDATE SET state = 'fired', level = excluded.level, summary = excluded.summary,
            firings = a.firings + 1, firing_id = excluded.firing_id, fired_at = v_now,
            held_at = v_now
    )
    SELECT count(*) INTO fired FROM firing;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.observe_alerts IS
    'Moves the alerts of a rule: fires, cools and arms them by the subjects for which its '
    'condition holds now.';
REVOKE ALL ON FUNCTION livewell.observe_alerts FROM PUBLIC;

-- ── alerts/functions/prune_alerts.sql ──
-- Forget firings that ended long ago, with all that was sent of them, and alerts that have not
-- fired since; a bounded page per call.
--
-- Called by: alerts/deliver.py, prune(), until it answers 0.
-- Index:     alert_firing_fired_idx; notifications and attempts go with their firing.
CREATE OR REPLACE FUNCTION livewell.prune_alerts(p_days integer, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_before    timestamptz := v_now - make_interval(days => greatest(p_days, 1));
    v_firings   integer;
    v_alerts    integer;
BEGIN
    DELETE FROM livewell.alert_firing f
    WHERE f.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.alert_firing o
            WHERE o.fired_at < v_before AND o.ended_at < v_before
            ORDER BY o.fired_at LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_firings = ROW_COUNT;
    DELETE FROM livewell.alert a
    WHERE a.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.alert o
            WHERE o.state = 'armed' AND o.held_at < v_before
            ORDER BY o.id LIMIT p_limit FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_alerts = ROW_COUNT;
    RETURN v_firings + v_alerts;
END
$$;
COMMENT ON FUNCTION livewell.prune_alerts IS
    'Deletes at most p_limit firings and alerts that ended more than p_days ago, and answers how '
    'many.';
REVOKE ALL ON FUNCTION livewell.prune_alerts FROM PUBLIC;

-- ── alerts/functions/settle_attempt.sql ──
-- Record how an attempt ended, and decide what becomes of its notification.
--
-- Called by: alerts/deliver.py after sending; expire_attempts for those of whom nothing was heard.
-- p_outcome:       sent, refused (certainly not delivered) or unknown.
-- p_again:         a refusal that may pass: tried again later, up to 8 attempts.
-- p_quiet_seconds: the receiver asked for silence on this channel. A refusal with it (429) costs no
-- attempt: the receiver is well, and the day bounds it.
-- p_gone:          the receiver wants nothing more, ever (410): the channel is disabled.
-- "Sent" is never taken back, and a late "sent" is believed: whoever was frozen, and given up,
-- knows best what the receiver said. Otherwise only a pending attempt can be settled, once.
-- Lock: the channel's row first, as in begin_attempt.
CREATE OR REPLACE FUNCTION livewell.settle_attempt(
    p_attempt bigint,
    p_outcome text,
    p_status integer,
    p_detail text,
    p_again boolean DEFAULT false,
    p_quiet_seconds float8 DEFAULT NULL,
    p_gone boolean DEFAULT false
)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_attempts_max CONSTANT integer := 8;
    v_now       timestamptz;
    v_attempt   livewell.notification_attempt;
    v_channel   livewell.alert_channel;
    v_n         livewell.notification;
    v_state     livewell.notification_state;
BEGIN
    IF p_outcome NOT IN ('sent', 'refused', 'unknown') THEN
        RAISE EXCEPTION 'outcome %: allowed are sent, refused and unknown', p_outcome
            USING ERRCODE = 'LW003';
    END IF;
    SELECT * INTO v_attempt FROM livewell.notification_attempt a WHERE a.id = p_attempt;
    SELECT * INTO v_channel FROM livewell.alert_channel c
    WHERE c.name = v_attempt.channel
    FOR UPDATE;
    SELECT * INTO v_attempt FROM livewell.notification_attempt a WHERE a.id = p_attempt FOR UPDATE;
    SELECT * INTO v_n FROM livewell.notification n
    WHERE n.firing_id = v_attempt.firing_id AND n.channel = v_attempt.channel
    FOR UPDATE;
    v_now := livewell.now();
    IF v_n.firing_id IS NULL THEN
        RETURN 'gone';
    END IF;
    IF p_quiet_seconds > 0 THEN
        UPDATE livewell.alert_channel c
        SET quiet_until = greatest(
            c.quiet_until, v_now + least(p_quiet_seconds, 86400) * interval '1 second'
        )
        WHERE c.name = v_channel.name;
    END IF;
    IF v_attempt.outcome <> 'pending' AND p_outcome <> 'sent' THEN
        RETURN v_n.state;
    END IF;
    UPDATE livewell.notification_attempt a
    SET outcome = p_outcome::livewell.attempt_outcome, status = p_status,
        detail = left(livewell.redact(p_detail), 300), ended_at = v_now
    WHERE a.id = p_attempt;
    IF p_gone AND v_channel.disabled_at IS NULL THEN
        UPDATE livewell.alert_channel c SET disabled_at = v_now WHERE c.name = v_channel.name;
        PERFORM livewell.warn(
            'alerts', 'a receiver is gone and its channel was disabled', v_channel.name
        );
    END IF;
    IF v_n.state = 'sent' THEN
        RETURN v_n.state;
    END IF;

    v_state := CASE
        WHEN p_outcome = 'sent' THEN 'sent'
        WHEN p_outcome = 'refused' AND p_quiet_seconds > 0 AND p_again THEN 'waiting'
        WHEN v_n.attempts >= c_attempts_max THEN p_outcome
        WHEN p_outcome = 'refused' THEN CASE WHEN p_again THEN 'waiting' ELSE 'refused' END
        WHEN v_channel.repeats THEN 'waiting'
        ELSE 'unknown' END;
    UPDATE livewell.notification n
    SET state = v_state, settled_at = CASE WHEN v_state <> 'waiting' THEN v_now END,
        attempts = n.attempts
            - CASE WHEN v_state = 'waiting' AND p_quiet_seconds > 0 THEN 1 ELSE 0 END,
        -- 10 s, doubling up to 10 min: eight attempts in about half an hour.
        next_at = CASE
            WHEN v_state = 'waiting'
                THEN v_now + coalesce(
                    nullif(p_quiet_seconds, 0), least(600, 10 * 2 ^ (n.attempts - 1))
                ) * interval '1 second'
            ELSE n.next_at
        END
    WHERE n.firing_id = v_n.firing_id AND n.channel = v_n.channel;
    IF v_state = 'refused' THEN
        PERFORM livewell.warn(
            'alerts', 'a notification was refused', concat(v_channel.name, ': ', p_detail)
        );
    ELSIF p_outcome = 'unknown' THEN
        PERFORM livewell.warn(
            'alerts', 'it is not known whether a notification arrived',
            concat(v_channel.name, ': ', p_detail)
        );
    END IF;
    RETURN v_state;
END
$$;
COMMENT ON FUNCTION livewell.settle_attempt IS
    'Records how an attempt ended and answers the state of its notification.';
REVOKE ALL ON FUNCTION livewell.settle_attempt FROM PUBLIC;

-- ── alerts/functions/state_alerts.sql ──
-- What is wrong by the rules, which rules cannot be judged, and whether people can be told.
--
-- Called by: system_state. Exact: a hundred alerts of a rule at most, a few channels. Of what waits
--            for a channel 1,000 are counted, which then means "or more".
-- Index:     notification_next_idx (channel, next_at) WHERE state = 'waiting'
CREATE OR REPLACE FUNCTION livewell.state_alerts()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    RETURN jsonb_build_object(
        'how', 'exact',
        'rules', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', r.name, 'level', r.level, 'fired', a.fired, 'cooling', a.cooling,
                        'failed', r.failed_at IS NOT NULL, 'error', r.error,
                        'evaluated_seconds', extract(epoch FROM v_now - r.evaluated_at)::float8
                    ) ORDER BY r.level,
                    r.name
                ),
                '[]'
            )
            FROM (SELECT * FROM livewell.alert_rule o ORDER BY o.name LIMIT 1000) r
            CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE o.state = 'fired') AS fired,
                    count(*) FILTER (WHERE o.state = 'cooling') AS cooling
                FROM livewell.alert o
                WHERE o.rule = r.name
            ) a
        ),
        'channels', (
            SELECT coalesce(
                jsonb_agg(
                    jsonb_build_object(
                        'name', c.name, 'kind', c.kind, 'level', c.level, 'source', c.source,
                        'disabled_at', c.disabled_at,
                        'quiet_seconds', CASE
                            WHEN c.quiet_until > v_now
                                THEN extract(epoch FROM c.quiet_until - v_now)::float8
                        END,
                        'waiting', (
                            SELECT count(*)
                            FROM (
                                SELECT FROM livewell.notification n
                                WHERE n.channel = c.name AND n.state = 'waiting'
                                LIMIT 1000
                            ) w
                        )
                    ) ORDER BY c.name
                ),
                '[]'
            )
            FROM (SELECT * FROM livewell.alert_channel o ORDER BY o.name LIMIT 1000) c
        )
    );
END
$$;
COMMENT ON FUNCTION livewell.state_alerts IS 'Alert rules and channels for the system state.';
REVOKE ALL ON FUNCTION livewell.state_alerts FROM PUBLIC;

-- ── alerts/grants.sql ──
-- Who may do what with alerts.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables
table alert                         -        -        r        rawd     r
table alert_channel                 -        -        rw(disabled_at,quiet_until)  rawd     r
table alert_firing                  -        -        r        rawd     r
table alert_lasting                 -        -        r        rawd     r
table alert_rule                    -        -        r        rawd     r
table notification                  -        -        r        rawd     r
table notification_attempt          -        -        r        rawd     r

-- functions
function begin_attempt              -        -        -        X        -
function declare_channels           -        -        -        X        -
function enable_channel             -        -        X        X        -
function expire_attempts            -        -        -        X        -
function lasting                    -        -        -        X        -
function list_alerts                -        -        X        X        X
function list_attempts              -        -        X        X        X
function observe_alerts             -        -        -        X        -
function prune_alerts               -        -        -        X        -
function settle_attempt             -        -        -        X        -
function state_alerts               -        -        X        X        X

-- functions of other packages
function redact                     -        -        -        X        -
$matrix$);

-- ── operations/functions/mend/close_breaker.sql ──
-- Close the breaker of an upstream by hand: its calls are allowed again, all at once (R25).
--
-- Called by: `livewell upstreams close`, POST /v1/upstreams/{name}/close. p_credential: NULL is
--            every credential.
-- Lock:      the limiter's row first: calls are booked under it, so none is counted between closing
--            and forgetting.
-- As a probe that succeeded does it (book_calls): what was claimed before says nothing about the
-- time after. Five failures in a row open it again.
-- Answer:    closed, was_closed, unknown.
CREATE OR REPLACE FUNCTION livewell.close_breaker(p_name text, p_credential text, p_actor text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_answer    text := 'unknown';
    v_newest    bigint;
    v_closed    text[];
BEGIN
    PERFORM FROM livewell.limiter l WHERE l.name = p_name FOR NO KEY UPDATE;
    v_now := livewell.now();
    SELECT s.last_value + 16383 INTO v_newest FROM livewell.fence_seq s;
    IF EXISTS (
        SELECT FROM livewell.limiter_credential c
        WHERE c.limiter = p_name AND c.name = coalesce(p_credential, c.name)
    ) THEN
        WITH closed AS (
            UPDATE livewell.limiter_credential c
            SET breaker = 'closed', open_until = NULL, probe_fence = NULL, opened = 0,
                failures_in_row = 0, opened_fence = v_newest, opened_at = NULL,
                opened_reason = NULL, opened_keys = NULL, failing_until = NULL, free_at = v_now
            WHERE c.limiter = p_name
                AND c.name = coalesce(p_credential, c.name)
                AND c.breaker <> 'closed'
            RETURNING c.name
        )
        SELECT array_agg(x.name) INTO v_closed FROM closed x;
        DELETE FROM livewell.limiter_calls k
        WHERE k.limiter = p_name AND k.credential = ANY (v_closed);
        v_answer := CASE WHEN v_closed IS NULL THEN 'was_closed' ELSE 'closed' END;
    END IF;
    PERFORM livewell.record_act(
        p_actor, 'upstreams.close', p_name,
        jsonb_strip_nulls(jsonb_build_object('credential', p_credential)), v_answer
    );
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.close_breaker IS
    'Closes the breaker of a limiter and forgets its failures; audited.';
REVOKE ALL ON FUNCTION livewell.close_breaker FROM PUBLIC;

-- ── operations/functions/mend/probe_breaker.sql ──
-- Let one call try now whether an upstream is back, instead of when its breaker would (R25).
--
-- Called by: `livewell upstreams probe`, POST /v1/upstreams/{name}/probe. p_credential: NULL is
--            every credential.
-- Lock:      the limiter's row first: the probe is granted under the same lock.
-- Answer:    probing (the next claim is the probe), silent (the upstream asked for silence: that is
--            ended by resume_upstream), closed (there is nothing to probe), unknown.
CREATE OR REPLACE FUNCTION livewell.probe_breaker(p_name text, p_credential text, p_actor text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_answer    text := 'unknown';
    v_open      integer;
BEGIN
    PERFORM FROM livewell.limiter l WHERE l.name = p_name FOR NO KEY UPDATE;
    v_now := livewell.now();
    IF EXISTS (
        SELECT FROM livewell.limiter_credential c
        WHERE c.limiter = p_name AND c.name = coalesce(p_credential, c.name)
    ) THEN
        UPDATE livewell.limiter_credential c
        SET open_until = least(c.open_until, v_now), free_at = v_now, failing_until = NULL
        WHERE c.limiter = p_name
            AND c.name = coalesce(p_credential, c.name)
            AND c.breaker <> 'closed';
        GET DIAGNOSTICS v_open = ROW_COUNT;
        v_answer := CASE
            WHEN v_open = 0 THEN 'closed'
            WHEN EXISTS (
                SELECT FROM livewell.limiter_credential c
                WHERE c.limiter = p_name
                    AND c.name = coalesce(p_credential, c.name)
                    AND c.breaker <> 'closed'
                    AND coalesce(c.quiet_until <= v_now, true)
            )
                THEN 'probing'
            ELSE 'silent' END;
    END IF;
    PERFORM livewell.record_act(
        p_actor, 'upstreams.probe', p_name,
        jsonb_strip_nulls(jsonb_build_object('credential', p_credential)), v_answer
    );
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.probe_breaker IS
    'Ends the pause of an open breaker, so that one call tries now; audited.';
REVOKE ALL ON FUNCTION livewell.probe_breaker FROM PUBLIC;

-- ── operations/functions/mend/resume_upstream.sql ──
-- Let an upstream be called again: end the silence that it asked for, and the pause that somebody
-- ordered (R25).
--
-- Called by: `livewell upstreams resume`, POST /v1/upstreams/{name}/resume. p_name: of an upstream,
--            or of a limiter that an app declared.
-- Lock:      the limiter's row first, as everywhere in limits; nobody grants or books calls
--            meanwhile.
-- Answer:    resumed, not_stopped (there was neither), unknown. A breaker is another matter:
--            probe_breaker, close_breaker.
CREATE OR REPLACE FUNCTION livewell.resume_upstream(p_name text, p_actor text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_known     boolean;
    v_ended     integer;
    v_resumed   integer;
    v_answer    text;
BEGIN
    PERFORM FROM livewell.limiter l WHERE l.name = p_name FOR NO KEY UPDATE;
    v_known := FOUND OR EXISTS (SELECT FROM livewell.upstream u WHERE u.name = p_name);
    v_now := livewell.now();
    UPDATE livewell.limiter_credential c
    SET quiet_until = NULL, quiet_since = NULL, quiet_asked_seconds = NULL
    WHERE c.limiter = p_name AND c.quiet_until > v_now;
    GET DIAGNOSTICS v_ended = ROW_COUNT;
    UPDATE livewell.upstream u
    SET paused_at = NULL
    WHERE u.name = p_name AND u.paused_at IS NOT NULL;
    GET DIAGNOSTICS v_resumed = ROW_COUNT;
    v_answer := CASE
        WHEN NOT v_known THEN 'unknown'
        WHEN v_ended + v_resumed > 0 THEN 'resumed'
        ELSE 'not_stopped' END;
    PERFORM livewell.record_act(
        p_actor, 'upstreams.resume', p_name,
        jsonb_build_object('silences', v_ended, 'pauses', v_resumed), v_answer
    );
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.resume_upstream IS
    'Ends the silence and the pause of an upstream; audited.';
REVOKE ALL ON FUNCTION livewell.resume_upstream FROM PUBLIC;

-- ── operations/functions/mend/take_singleton.sql ──
-- Take a singleton from a holder that is dead, so that another need not wait for its lease (R25).
--
-- Called by: `livewell singletons take`, POST /v1/singletons/{name}/take.
-- Dead:      no worker of the holder's name has a lease that runs. A holder that lives keeps it,
--            unless p_force: then the run that it is in is fenced, and what it writes under the
--            singleton is refused.
-- Lock:      the singleton's row; work under it holds that lock (hold_singleton), so it is taken
--            between two steps of that work, never within one.
-- The fence grows: whoever had it can neither renew it nor write under it. A run that was going on
-- becomes crashed with the next tick.
-- Answer:    taken, alive (and nothing was done), free (nobody holds it), unknown.
CREATE OR REPLACE FUNCTION livewell.take_singleton(p_name text, p_force boolean, p_actor text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz;
    v_row       livewell.singleton;
    v_answer    text;
BEGIN
    SELECT * INTO v_row FROM livewell.singleton s WHERE s.name = p_name FOR NO KEY UPDATE;
    v_now := livewell.now();
    v_answer := CASE
        WHEN v_row.name IS NULL THEN 'unknown'
        WHEN v_row.expires_at <= v_now THEN 'free'
        WHEN NOT p_force
            AND EXISTS (
                SELECT FROM livewell.worker w WHERE w.name = v_row.holder AND w.expires_at > v_now
            )
            THEN 'alive'
        ELSE 'taken' END;
    IF v_answer = 'taken' THEN
        UPDATE livewell.singleton s
        SET expires_at = '-infinity', fence = s.fence + 1
        WHERE s.name = p_name;
    END IF;
    PERFORM livewell.record_act(
        p_actor, 'singletons.take', p_name,
        jsonb_strip_nulls(jsonb_build_object('force', p_force, 'holder', v_row.holder)), v_answer
    );
    RETURN v_answer;
END
$$;
COMMENT ON FUNCTION livewell.take_singleton IS
    'Ends the term of a singleton whose holder is dead, or of any if forced; audited.';
REVOKE ALL ON FUNCTION livewell.take_singleton FROM PUBLIC;

-- ── operations/functions/rules/alert_rules.sql ──
-- Every alert rule there is: those of each function livewell.rules_<capability>(), in its columns.
--
-- Called by: evaluate_rule, alerts/rules.py, CLI.
-- A function without arguments whose name begins so is asked, if the caller may. It lists rules of
-- its own; the condition of each is the function rule_<name>(now): columns subject and summary.
-- A list that fails stands for one rule of its capability's name. That one cannot be evaluated,
-- which is counted and told like any rule that fails; the rules of the others go on.
CREATE OR REPLACE FUNCTION livewell.alert_rules()
RETURNS TABLE (name text, level text, hysteresis interval, meaning text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET lock_timeout = '100ms'    -- it runs functions that it does not know
AS $$
DECLARE
    v_list  text;
BEGIN
    FOR v_list IN
        SELECT p.proname FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'livewell'::regnamespace AND p.proname LIKE 'rules\_%'
          AND p.pronargs = 0 AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
        ORDER BY p.proname LIMIT 100
    LOOP
        <<asked>>
        BEGIN
            RETURN QUERY EXECUTE format(
                'SELECT r.name, r.level, r.hysteresis, r.meaning FROM livewell.%I() r', v_list);
        EXCEPTION WHEN OTHERS THEN
            RETURN QUERY SELECT
                substr(v_list, 7), 'P2'::text, interval '1 hour',
                'its rules could not be listed: ' || SQLERRM;
        END asked;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.alert_rules IS 'The alert rules of all capabilities with their levels.';
REVOKE ALL ON FUNCTION livewell.alert_rules FROM PUBLIC;

-- ── operations/functions/rules/budgets_above.sql ──
-- Budgets of which more than a share is used or reserved.
--
-- Called by: rule_budget_three_quarters, rule_budget_nine_tenths. Through list_limiters: what
--            counts against a budget is decided there.
CREATE OR REPLACE FUNCTION livewell.budgets_above(p_share float8)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT livewell.limiter_subject(l.name, l.credential),
        format(
            '%s: %s %% of its budget of %s %s is used',
            livewell.limiter_subject(l.name, l.credential),
            round(100.0 * (l.used + l.reserved) / l.budget_units, 1), l.budget_units, l.budget_unit
        )
    FROM livewell.list_limiters() l
    WHERE l.active AND l.used + l.reserved > l.budget_units * p_share;
END
$$;
COMMENT ON FUNCTION livewell.budgets_above IS 'Budgets of which more than this share is used.';
REVOKE ALL ON FUNCTION livewell.budgets_above FROM PUBLIC;

-- ── operations/functions/rules/due_watched.sql ──
-- What waits in the ledger for somebody who watches it, by queue: how much, since when, and the key
-- that has waited the most times its time to live.
--
-- Called by: rule_queue_deep, rule_queue_stalled, rule_key_overdue, rule_upstream_silent, once a
--            minute each. Refreshes that cannot go wait in the ledger and not in the queue, so
--            rules on work look here too.
-- Index:     ledger_due_idx, subscription_key_idx, viewer_session_pkey.
-- Bounded:   of each upstream the 500 keys that are due for longest and the 500 that are due for
--            shortest are looked at, and 10,000 are counted; due is their number times the share of
--            them that is watched.
-- Watched:   a session that was seen within five minutes. Keys whose viewers left are due too until
--            the due check parks them, and it cannot while calls are stopped.
-- Not here: what is paused or parked, because somebody said so; what is backed off, because it is
-- not due. What fails is counted as waiting, and never is the worst.
CREATE OR REPLACE FUNCTION livewell.due_watched(p_now timestamptz)
RETURNS TABLE (
    upstream text, queue text, due bigint, oldest_at timestamptz, worst_type text, worst_key text,
    worst_at timestamptz, worst_times float8
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    c_page      CONSTANT integer := 500;
    c_count_max CONSTANT integer := 10000;
    v_name      text;
BEGIN
    FOR v_name IN
        SELECT u.name FROM livewell.upstream u WHERE u.paused_at IS NULL ORDER BY u.name LIMIT 1000
    LOOP
        RETURN QUERY
        WITH page AS MATERIALIZED (
            (
                SELECT l.data_type, l.key, l.due_at, l.failing_since, l.ttl_override
                FROM livewell.ledger l
                WHERE l.upstream = v_name AND l.due_at <= p_now
                ORDER BY l.due_at LIMIT c_page
            )
            UNION
            (
                SELECT l.data_type, l.key, l.due_at, l.failing_since, l.ttl_override
                FROM livewell.ledger l
                WHERE l.upstream = v_name AND l.due_at <= p_now
                ORDER BY l.due_at DESC LIMIT c_page
            )
        ),
        looked AS MATERIALIZED (
            SELECT p.data_type, p.key, p.due_at, t.pool,
                CASE
                    WHEN p.failing_since IS NULL
                        THEN (
                            extract(epoch FROM p_now - p.due_at) / extract(
                                epoch FROM coalesce(p.ttl_override, t.ttl)
                            )
                        )::float8
                END AS times
            FROM page p
            JOIN livewell.data_type t ON t.name = p.data_type
            -- One look by index for each key: as a semi-join, statistics of a new table make it
            -- read all subscriptions for each.
            CROSS JOIN LATERAL (
                SELECT FROM livewell.subscription s
                JOIN livewell.viewer_session v ON v.id = s.session_id
                WHERE s.data_type = p.data_type
                    AND s.key = p.key
                    AND v.seen_at > p_now - interval '5 minutes'
                LIMIT 1
            ) seen
            WHERE t.paused_at IS NULL AND t.parked_reason IS NULL
        )
        SELECT v_name, livewell.refresh_queue(v_name, w.pool),
            round(
                (
                    SELECT count(*)
                    FROM (
                        SELECT FROM livewell.ledger l
                        WHERE l.upstream = v_name AND l.due_at <= p_now
                        LIMIT c_count_max
                    ) o
                ) * count(*)::numeric / (SELECT count(*) FROM page)
            )::bigint,
            min(w.due_at), (array_agg(w.data_type ORDER BY w.times DESC NULLS LAST, w.key))[1],
            (array_agg(w.key ORDER BY w.times DESC NULLS LAST, w.key))[1],
            (array_agg(w.due_at ORDER BY w.times DESC NULLS LAST, w.key))[1], max(w.times)
        FROM looked w
        GROUP BY w.pool;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.due_watched IS
    'Watched keys that are due, by queue: how many, since when, and which has waited longest for '
    'its time to live.';
REVOKE ALL ON FUNCTION livewell.due_watched FROM PUBLIC;

-- ── operations/functions/rules/evaluate_rule.sql ──
-- Ask one rule what is wrong now, and tell its alerts.
--
-- Called by: operations/rules.py, once a minute and rule, each in a transaction of its own: a rule
--            that fails or takes too long costs the others nothing.
-- Lock:      the rule's row, before its condition is read: two evaluators take turns, and a
--            condition that needs a history (lasting) is counted once.
-- A rule whose query fails is a warning; its alerts stay as they are, for nothing is known. Beyond
-- 100 subjects the rest is counted, not told: a hundred messages say enough.
CREATE OR REPLACE FUNCTION livewell.evaluate_rule(p_rule text)
RETURNS TABLE (answer text, fired integer, cooled integer, rearmed integer)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    c_subjects_max CONSTANT integer := 100;
    v_now       timestamptz;
    v_rule      record;
    v_subjects  text[];
    v_summaries text[];
    v_failure   text;
BEGIN
    SELECT r.name, r.level, r.hysteresis INTO v_rule FROM livewell.alert_rules() r
    WHERE r.name = p_rule;
    IF v_rule.name IS NULL THEN
        RAISE EXCEPTION 'rule %: there is none of that name', p_rule USING ERRCODE = 'LW003';
    END IF;
    INSERT INTO livewell.alert_rule (name, level, hysteresis)
    VALUES (v_rule.name, v_rule.level, v_rule.hysteresis)
    ON CONFLICT (name) DO NOTHING;
    PERFORM FROM livewell.alert_rule r WHERE r.name = p_rule FOR UPDATE;
    v_now := livewell.now();
    <<alone>>
    BEGIN
        EXECUTE format(
            'SELECT array_agg(o.subject), array_agg(o.summary) '
            'FROM (SELECT r.subject, r.summary FROM livewell.%I($1) r '
            'ORDER BY r.subject LIMIT $2) o',
            'rule_' || p_rule
        )
        INTO v_subjects, v_summaries
        USING v_now, c_subjects_max + 1;
    EXCEPTION WHEN OTHERS THEN
        v_failure := SQLSTATE || ': ' || SQLERRM;
    END alone;
    IF v_failure IS NOT NULL THEN
        UPDATE livewell.alert_rule r
        SET failed_at = v_now, error = left(livewell.redact(v_failure), 500)
        WHERE r.name = p_rule;
        PERFORM livewell.warn(
            'alerts.rules', p_rule || ': the rule could not be evaluated', v_failure
        );
        RETURN QUERY SELECT 'failed', 0, 0, 0;
        RETURN;
    END IF;
    IF cardinality(v_subjects) > c_subjects_max THEN
        PERFORM livewell.warn(
            'alerts.rules', p_rule || ': more than 100 alerts at once; the rest is not told',
            v_subjects[c_subjects_max + 1]
        );
    END IF;
    UPDATE livewell.alert_rule r
    SET failed_at = NULL, error = NULL
    WHERE r.name = p_rule AND r.failed_at IS NOT NULL;
    RETURN QUERY
    SELECT 'evaluated', o.fired, o.cooled, o.rearmed
    FROM livewell.observe_alerts(
        p_rule, v_rule.level, v_rule.hysteresis, coalesce(v_subjects[:c_subjects_max], '{}'),
        coalesce(v_summaries[:c_subjects_max], '{}')
    ) o;
END
$$;
COMMENT ON FUNCTION livewell.evaluate_rule IS
    'Evaluates one alert rule and moves its alerts; a rule that fails is a warning.';
REVOKE ALL ON FUNCTION livewell.evaluate_rule FROM PUBLIC;

-- ── operations/functions/rules/limiter_subject.sql ──
-- What a limiter and a credential are called in an alert: the limiter's name, and the credential's
-- if it has one. Never a secret: a credential is a name.
--
-- Called by: budgets_above, rule_breaker_open, rule_budget_reached, rule_calls_near_limit; rules
--            about limiters.
CREATE OR REPLACE FUNCTION livewell.limiter_subject(p_limiter text, p_credential text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN p_limiter || CASE WHEN p_credential <> '' THEN ' (' || p_credential || ')' ELSE '' END;
END
$$;
COMMENT ON FUNCTION livewell.limiter_subject IS 'The name of a limiter''s credential, for people.';
REVOKE ALL ON FUNCTION livewell.limiter_subject FROM PUBLIC;

-- ── operations/functions/rules/rule_background_waiting.sql ──
-- Rule background_waiting (P2): a job in the background lane has been ready for more than an hour.
--
-- Called by: evaluate_rule. Index: job_ready_idx.
-- Of each queue the 100 jobs are looked at that are next in line: without priorities the first is
-- the oldest. A paused queue waits because somebody said so.
CREATE OR REPLACE FUNCTION livewell.rule_background_waiting(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT q.name,
        format(
            'queue %s: a background job has been waiting for %s min', q.name,
            floor(extract(epoch FROM p_now - o.oldest) / 60)
        )
    FROM livewell.queue q
    CROSS JOIN LATERAL (
        SELECT min(n.run_at) AS oldest
        FROM (
            SELECT j.run_at FROM livewell.job j
            WHERE j.queue = q.name AND j.lane = 1 AND j.state = 'ready' AND j.lost = 0
            ORDER BY j.rank, j.id LIMIT 100
        ) n
    ) o
    WHERE q.paused_at IS NULL AND o.oldest < p_now - interval '1 hour';
END
$$;
COMMENT ON FUNCTION livewell.rule_background_waiting IS
    'Queues whose background lane has been waiting for more than an hour.';
REVOKE ALL ON FUNCTION livewell.rule_background_waiting FROM PUBLIC;

-- ── operations/functions/rules/rule_breaker_open.sql ──
-- Rule breaker_open (P1): the calls of a credential fail, and its breaker is open or waits for its
-- probe. The summary says what opened it.
--
-- Called by: evaluate_rule. A table of a few rows.
CREATE OR REPLACE FUNCTION livewell.rule_breaker_open(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT livewell.limiter_subject(c.limiter, c.name),
        format(
            '%s: its calls fail%s; %s', livewell.limiter_subject(c.limiter, c.name),
            CASE
                WHEN c.opened_reason IS NOT NULL
                    THEN format(
                        ' (%s%s)', c.opened_reason,
                        CASE
                            WHEN c.opened_keys > 1 THEN format(', %s keys', c.opened_keys)
                            ELSE ''
                        END
                    )
                ELSE ''
            END,
            CASE
                WHEN c.open_until > p_now
                    THEN format(
                        'none is made for %s min',
                        ceil(extract(epoch FROM c.open_until - p_now) / 60)
                    )
                ELSE 'one is made to see whether it is well again'
            END
        )
    FROM livewell.limiter_credential c
    -- Not while it merely doubts (opened = 0): a healthy key settles that within seconds. Nor while
    -- it waits out a silence, which has a rule of its own.
    WHERE c.active
        AND c.breaker <> 'closed'
        AND (
            c.opened > 0
            OR c.opened_reason <> 'silence' AND c.opened_at < p_now - interval '1 minute'
        );
END
$$;
COMMENT ON FUNCTION livewell.rule_breaker_open IS 'Credentials whose breaker is not closed.';
REVOKE ALL ON FUNCTION livewell.rule_breaker_open FROM PUBLIC;

-- ── operations/functions/rules/rule_budget_nine_tenths.sql ──
-- Rule budget_nine_tenths (P1): more than 90 % of a budget is used.
--
-- Called by: evaluate_rule.
CREATE OR REPLACE FUNCTION livewell.rule_budget_nine_tenths(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT b.subject, b.summary FROM livewell.budgets_above(0.9) b;
END
$$;
COMMENT ON FUNCTION livewell.rule_budget_nine_tenths IS 'Budgets of which more than 90 % is used.';
REVOKE ALL ON FUNCTION livewell.rule_budget_nine_tenths FROM PUBLIC;

-- ── operations/functions/rules/rule_budget_reached.sql ──
-- Rule budget_reached (P0): a budget is used as far as it may be, and no call is made any more.
--
-- Called by: evaluate_rule. Calls stop at the limiter's budget_stop (95 %), or when the next call
--            would not fit below it: then the limiter answers "budget".
CREATE OR REPLACE FUNCTION livewell.rule_budget_reached(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT livewell.limiter_subject(l.name, l.credential),
        format(
            '%s: its budget of %s %s is used up; no calls are made%s',
            livewell.limiter_subject(l.name, l.credential), l.budget_units, l.budget_unit,
            CASE
                WHEN l.reason = 'budget'
                    THEN to_char(
                        (p_now + l.wait_seconds * interval '1 second') AT TIME ZONE 'UTC',
                        '" before "YYYY-MM-DD HH24:MI" UTC"'
                    )
                ELSE ''
            END
        )
    FROM livewell.list_limiters() l
    JOIN livewell.limiter m ON m.name = l.name
    WHERE l.active
        AND l.budget_units IS NOT NULL
        AND (
            l.used + l.reserved >= m.budget_units * m.budget_stop
            OR l.reason = 'budget' AND l.calls_now = 0
        );
END
$$;
COMMENT ON FUNCTION livewell.rule_budget_reached IS 'Budgets that are used up.';
REVOKE ALL ON FUNCTION livewell.rule_budget_reached FROM PUBLIC;

-- ── operations/functions/rules/rule_budget_three_quarters.sql ──
-- Rule budget_three_quarters (P2): more than 75 % of a budget is used.
--
-- Called by: evaluate_rule.
CREATE OR REPLACE FUNCTION livewell.rule_budget_three_quarters(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT b.subject, b.summary FROM livewell.budgets_above(0.75) b;
END
$$;
COMMENT ON FUNCTION livewell.rule_budget_three_quarters IS
    'Budgets of which more than 75 % is used.';
REVOKE ALL ON FUNCTION livewell.rule_budget_three_quarters FROM PUBLIC;

-- ── operations/functions/rules/rule_calls_near_limit.sql ──
-- Rule calls_near_limit (P2): calls have been at more than 5/6 of their rate (250 of 300 a minute)
-- at every look for 15 minutes, and more work waits: the limit is what holds it up.
--
-- Called by: evaluate_rule. Index: limiter_grant_idx, job_ready_idx.
CREATE OR REPLACE FUNCTION livewell.rule_calls_near_limit(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT l.subject,
        format(
            '%s: more than 5/6 of the calls that its limit allows have been made for %s min, '
            'and more work waits',
            l.subject, floor(extract(epoch FROM p_now - l.since) / 60)
        )
    FROM livewell.lasting(
        'calls_near_limit',
        ARRAY(
            SELECT livewell.limiter_subject(m.name, m.credential) FROM livewell.list_limiters() m
            WHERE m.active
                AND m.spent > m.rate_calls * 5.0 / 6
                AND EXISTS (
                    SELECT FROM unnest(m.queues) AS q (name)
                    JOIN livewell.job j ON j.queue = q.name AND j.state = 'ready' AND j.lost = 0
                )
        ),
        interval '15 minutes', p_now
    ) l;
END
$$;
COMMENT ON FUNCTION livewell.rule_calls_near_limit IS
    'Limiters whose calls have been near their limit for 15 minutes while work waits.';
REVOKE ALL ON FUNCTION livewell.rule_calls_near_limit FROM PUBLIC;

-- ── operations/functions/rules/rule_credential_missing.sql ──
-- Rule credential_missing (P1): workers work the queues of an upstream, and none of them has any of
-- its credentials: none can call it.
--
-- Called by: evaluate_rule. Tables of a few rows.
-- A worker says which credentials it lacks (worker.lacks, "limiter credential"); one of an older
-- release says nothing, and counts as having them. Without any worker it is another matter:
-- queue_stalled.
CREATE OR REPLACE FUNCTION livewell.rule_credential_missing(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT m.name,
        format(
            '%s: no worker has its credential; set %s where they run', m.name,
            string_agg(c.name, ' or ' ORDER BY c.name)
        )
    FROM livewell.limiter m
    JOIN livewell.limiter_credential c ON c.limiter = m.name AND c.active
    WHERE EXISTS (
        SELECT FROM livewell.queue q
        JOIN livewell.worker w ON livewell.works_queue(w.queues, q.name) AND w.expires_at > p_now
        WHERE q.limiter = m.name
    )
    GROUP BY m.name
    HAVING NOT EXISTS (
        SELECT FROM livewell.limiter_credential o
        JOIN livewell.queue q ON q.limiter = o.limiter
        JOIN livewell.worker w ON livewell.works_queue(w.queues, q.name) AND w.expires_at > p_now
        WHERE o.limiter = m.name AND o.active AND (o.limiter || ' ' || o.name) <> ALL (w.lacks)
    );
END
$$;
COMMENT ON FUNCTION livewell.rule_credential_missing IS
    'Limiters whose workers all lack every credential of it.';
REVOKE ALL ON FUNCTION livewell.rule_credential_missing FROM PUBLIC;

-- ── operations/functions/rules/rule_key_overdue.sql ──
-- Rule key_overdue (P1): a watched key has been due for more than five times its time to live, and
-- for two minutes at least: the due check does not come to it.
--
-- Called by: evaluate_rule. Bounds and what is not counted: due_watched.
-- A key that fails or is backed off is tried again at its own pace and does not raise this:
-- keys_failing of the doctor and the share of what is fresh tell of those.
CREATE OR REPLACE FUNCTION livewell.rule_key_overdue(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT d.queue,
        format(
            '%s: %s %s is watched and has been due for %s s, '
            '%s times its time to live; %s keys are due',
            d.queue, d.worst_type, left(d.worst_key, 60),
            floor(extract(epoch FROM p_now - d.worst_at)), floor(d.worst_times), d.due
        )
    FROM livewell.due_watched(p_now) d
    WHERE d.worst_times > 5 AND d.worst_at < p_now - interval '2 minutes';
END
$$;
COMMENT ON FUNCTION livewell.rule_key_overdue IS
    'Queues of refreshes with a watched key that has been due for more than five times its time '
    'to live.';
REVOKE ALL ON FUNCTION livewell.rule_key_overdue FROM PUBLIC;

-- ── operations/functions/rules/rule_queue_deep.sql ──
-- Rule queue_deep (P1): more than 1,000 jobs and watched keys that are due wait for a queue, and
-- have at every look for 30 minutes.
--
-- Called by: evaluate_rule. Index: job_ready_idx, job_suspect_idx. Never more than 1,001 of a queue
--            are counted.
-- Refreshes wait in the ledger until they may go: due_watched counts them.
CREATE OR REPLACE FUNCTION livewell.rule_queue_deep(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT l.subject,
        format(
            'queue %s: more than 1,000 jobs and due keys have been waiting for %s min', l.subject,
            floor(extract(epoch FROM p_now - l.since) / 60)
        )
    FROM livewell.lasting(
        'queue_deep',
        ARRAY(
            SELECT q.name
            FROM livewell.queue q
            LEFT JOIN livewell.due_watched(p_now) d ON d.queue = q.name
            WHERE coalesce(d.due, 0) + (
                SELECT count(*)
                FROM (
                    SELECT FROM livewell.job j
                    WHERE j.queue = q.name AND j.state = 'ready' AND j.lost = 0
                    LIMIT 1001
                ) o
            ) + (
                SELECT count(*)
                FROM (
                    SELECT FROM livewell.job j
                    WHERE j.queue = q.name AND j.state = 'ready' AND j.lost > 0
                    LIMIT 1001
                ) o
            ) > 1000
        ),
        interval '30 minutes', p_now
    ) l;
END
$$;
COMMENT ON FUNCTION livewell.rule_queue_deep IS
    'Queues for which more than 1,000 jobs and due keys have been waiting for 30 minutes.';
REVOKE ALL ON FUNCTION livewell.rule_queue_deep FROM PUBLIC;

-- ── operations/functions/rules/rule_queue_stalled.sql ──
-- Rule queue_stalled (P1): work has been waiting for a queue, as a job or as a watched key that is
-- due, at every look for 10 minutes, and nothing was completed in that time.
--
-- Called by: evaluate_rule. Index: job_ready_idx, job_suspect_idx, stat_pkey.
-- Completed: succeeded, by the workers' own counts (stat), which they write every few seconds.
--            Attempts that fail complete nothing.
-- A paused queue stands still because somebody said so.
CREATE OR REPLACE FUNCTION livewell.rule_queue_stalled(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT l.subject,
        format(
            'queue %s: work has been waiting for %s min, and nothing was completed', l.subject,
            floor(extract(epoch FROM p_now - l.since) / 60)
        )
    FROM livewell.lasting(
        'queue_stalled',
        ARRAY(
            SELECT q.name
            FROM livewell.queue q
            LEFT JOIN livewell.due_watched(p_now) d ON d.queue = q.name
            WHERE q.paused_at IS NULL
                AND (
                    d.due > 0
                    OR EXISTS (
                        SELECT FROM livewell.job j
                        WHERE j.queue = q.name AND j.state = 'ready' AND j.lost = 0
                    )
                    OR EXISTS (
                        SELECT FROM livewell.job j
                        WHERE j.queue = q.name AND j.state = 'ready' AND j.lost > 0
                    )
                )
                AND NOT EXISTS (
                    SELECT FROM livewell.stat s
                    WHERE s.minute > p_now - interval '10 minutes'
                        AND s.queue = q.name
                        AND s.outcome = 'succeeded'
                )
        ),
        interval '10 minutes', p_now
    ) l;
END
$$;
COMMENT ON FUNCTION livewell.rule_queue_stalled IS
    'Queues with work waiting and nothing completed for 10 minutes.';
REVOKE ALL ON FUNCTION livewell.rule_queue_stalled FROM PUBLIC;

-- ── operations/functions/rules/rule_schedule_late.sql ──
-- Rule schedule_late (P0): periodic work has not run when it should have (R24): twice its interval
-- and a minute have passed.
--
-- Called by: evaluate_rule. What is late is decided by late_schedules(), which an outside watchdog
--            is told as well.
CREATE OR REPLACE FUNCTION livewell.rule_schedule_late(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT l.name,
        format('%s: it should have run, and is late by %s min', l.name, floor(l.late_seconds / 60))
    FROM livewell.late_schedules() l;
END
$$;
COMMENT ON FUNCTION livewell.rule_schedule_late IS
    'Schedules that have not run when they should have.';
REVOKE ALL ON FUNCTION livewell.rule_schedule_late FROM PUBLIC;

-- ── operations/functions/rules/rule_singleton_held.sql ──
-- Rule singleton_held (P0): one run has held a singleton for more than 10 minutes, and holds it
-- still.
--
-- Called by: evaluate_rule. A table of a few rows.
-- The due check is not a run: whoever does it renews its term for as long as it lives, and a term
-- that is not renewed ends by itself.
CREATE OR REPLACE FUNCTION livewell.rule_singleton_held(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_due_check text := livewell.due_check_name();
BEGIN
    RETURN QUERY
    SELECT s.name,
        format(
            '%s: held by %s for %s min', s.name, s.holder,
            floor(extract(epoch FROM p_now - s.acquired_at) / 60)
        )
    FROM livewell.singleton s
    WHERE s.expires_at > p_now
        AND s.acquired_at < p_now - interval '10 minutes'
        AND s.name <> v_due_check;
END
$$;
COMMENT ON FUNCTION livewell.rule_singleton_held IS
    'Singletons that one run has held for more than 10 minutes.';
REVOKE ALL ON FUNCTION livewell.rule_singleton_held FROM PUBLIC;

-- ── operations/functions/rules/rule_size_underestimated.sql ──
-- Rule size_underestimated (P2): answers of a type, as measured, are more than twice as large as
-- its file says; what is reserved for its calls is too little.
--
-- Called by: evaluate_rule. Index: limiter_estimate_pkey.
CREATE OR REPLACE FUNCTION livewell.rule_size_underestimated(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.name,
        format(
            '%s: an answer has %s bytes per key, and its file says %s', t.name, round(e.units),
            t.size_estimate
        )
    FROM livewell.data_type t
    JOIN livewell.limiter_estimate e
        ON e.limiter = t.upstream AND e.kind = 'livewell.refresh:' || t.name
    WHERE e.units > 2 * t.size_estimate;
END
$$;
COMMENT ON FUNCTION livewell.rule_size_underestimated IS
    'Types whose answers are more than twice as large as estimated.';
REVOKE ALL ON FUNCTION livewell.rule_size_underestimated FROM PUBLIC;

-- ── operations/functions/rules/rule_type_silent.sql ──
-- Rule type_silent (P1): a type that somebody watches has a stale key, and none of its keys was
-- refreshed for 24 hours.
--
-- Called by: evaluate_rule. Index: viewer_session_seen_idx, subscription_pkey, refresh_count_pkey,
--            ledger_pkey.
-- Stale: a type with a long time to live needs no refresh for days, and that is nothing to report.
--        For 10 minutes: somebody who comes back to a type that nobody has watched for a week finds
--        it
-- stale too, until it is refreshed. Paused types and upstreams are silent because somebody said so.
-- Bounds: 200 live sessions and 200 of the watched keys of a type are looked at; a type that is
--         silent is silent for all of them.
CREATE OR REPLACE FUNCTION livewell.rule_type_silent(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_silent text[];
BEGIN
    v_silent := ARRAY(
        WITH watched AS MATERIALIZED (
            SELECT DISTINCT s.data_type, s.key
            FROM (
                SELECT v.id FROM livewell.viewer_session v
                WHERE v.seen_at > p_now - interval '5 minutes'
                ORDER BY v.seen_at DESC LIMIT 200
            ) live
            CROSS JOIN LATERAL (
                SELECT o.data_type, o.key FROM livewell.subscription o
                WHERE o.session_id = live.id
                LIMIT 1000
            ) s
        )
        SELECT t.name
        FROM livewell.data_type t
        JOIN livewell.upstream u ON u.name = t.upstream
        WHERE t.paused_at IS NULL
            AND u.paused_at IS NULL
            -- Counted by the hour: an hour that has not begun 24 hours ago is recent enough without
            -- a closer look.
            AND NOT EXISTS (
                SELECT FROM livewell.refresh_count c
                WHERE c.hour > p_now - interval '24 hours'
                    AND c.data_type = t.name
                    AND c.outcome IN ('stored', 'corrected', 'unchanged', 'missing')
            )
            AND EXISTS (
                SELECT FROM (
                    SELECT w.key FROM watched w WHERE w.data_type = t.name ORDER BY w.key LIMIT 200
                ) w
                JOIN livewell.ledger l ON l.data_type = t.name AND l.key = w.key
                WHERE livewell.is_stale(t, l, p_now)
            )
            AND coalesce(
                (SELECT max(l.checked_at) FROM livewell.ledger l WHERE l.data_type = t.name),
                t.applied_at
            ) <= p_now - interval '24 hours'
    );
    RETURN QUERY
    SELECT l.subject,
        format(
            '%s: somebody watches it, and it has not been refreshed since %s', l.subject,
            coalesce(
                (
                    SELECT to_char(max(o.checked_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')
                    FROM livewell.ledger o
                    WHERE o.data_type = l.subject
                ),
                'it was applied'
            )
        )
    FROM livewell.lasting('type_silent', v_silent, interval '10 minutes', p_now) l;
END
$$;
COMMENT ON FUNCTION livewell.rule_type_silent IS
    'Watched types with a stale key and no refresh for 24 hours.';
REVOKE ALL ON FUNCTION livewell.rule_type_silent FROM PUBLIC;

-- ── operations/functions/rules/rule_upstream_silent.sql ──
-- Rule upstream_silent (P1): work waits for an upstream, and for 15 minutes no call of any of its
-- credentials was allowed: it asked for silence, or its breaker is open.
--
-- Called by: evaluate_rule. Index: stat_pkey, job_ready_idx, and those of due_watched and
--            limiter_trouble.
-- A probe, or a silence that is asked for again, lets the limiter look well for a moment: what was
-- silent at the last look stays so until something was completed.
-- Work waits: a watched key is due, or a job is ready. What nobody waits for may be silent. A
-- paused upstream or queue stands still because somebody said so.
CREATE OR REPLACE FUNCTION livewell.rule_upstream_silent(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_due   text[] := ARRAY(SELECT d.queue FROM livewell.due_watched(p_now) d);
BEGIN
    RETURN QUERY
    SELECT l.subject,
        format(
            '%s: no call has been allowed for %s min%s', l.subject,
            floor(extract(epoch FROM p_now - l.since) / 60), coalesce(': ' || t.words, '')
        )
    FROM livewell.lasting(
        'upstream_silent',
        ARRAY(
            SELECT m.name FROM livewell.limiter m
            WHERE EXISTS (
                SELECT FROM livewell.limiter_credential c WHERE c.limiter = m.name AND c.active
            )
                AND (
                    NOT EXISTS (
                        SELECT FROM livewell.limiter_credential c
                        WHERE c.limiter = m.name
                            AND c.active
                            AND c.breaker = 'closed'
                            AND coalesce(c.quiet_until <= p_now, true)
                    )
                    OR EXISTS (
                        SELECT FROM livewell.alert_lasting a
                        WHERE a.rule = 'upstream_silent'
                            AND a.subject = m.name
                            AND NOT EXISTS (
                                SELECT FROM livewell.queue q
                                JOIN livewell.stat s ON s.queue = q.name
                                WHERE q.limiter = m.name
                                    AND s.minute > p_now - interval '2 minutes'
                                    AND s.outcome = 'succeeded'
                            )
                    )
                )
                AND EXISTS (
                    SELECT FROM livewell.queue q
                    WHERE q.limiter = m.name
                        AND q.paused_at IS NULL
                        AND (
                            q.name = ANY (v_due)
                            OR EXISTS (
                                SELECT FROM livewell.job j
                                WHERE j.queue = q.name AND j.state = 'ready' AND j.lost = 0
                            )
                        )
                )
                AND NOT EXISTS (
                    SELECT FROM livewell.upstream u
                    WHERE u.name = m.name AND u.paused_at IS NOT NULL
                )
        ),
        interval '15 minutes', p_now
    ) l
    LEFT JOIN LATERAL (
        SELECT CASE
            WHEN o.quiet_until IS NOT NULL
                THEN to_char(
                    o.quiet_until AT TIME ZONE 'UTC',
                    '"it asked for silence until "YYYY-MM-DD HH24:MI:SS" UTC"'
                )
            ELSE format(
                'its breaker is %s%s', replace(o.breaker, '_', ' '),
                coalesce(' (' || o.cause || ')', '')
            )
        END AS words
        FROM livewell.limiter_trouble(l.subject, p_now) o
        LIMIT 1
    ) t ON true;
END
$$;
COMMENT ON FUNCTION livewell.rule_upstream_silent IS
    'Limiters of which no credential may make a call for 15 minutes, while work waits.';
REVOKE ALL ON FUNCTION livewell.rule_upstream_silent FROM PUBLIC;

-- ── operations/functions/rules/rule_warning_rate.sql ──
-- Rule warning_rate (P2): the same failure was tolerated five times or more within an hour. A
-- warning about a type names it, so each type counts for itself.
--
-- Called by: evaluate_rule. Index: warning_hour_idx.
-- Warnings are counted by the clock's hour. Of the hour before only rows count that began within
-- the last sixty minutes: never too many are counted.
CREATE OR REPLACE FUNCTION livewell.rule_warning_rate(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT w.place || ': ' || w.what,
        format('%s: %s: %s times within an hour', w.place, w.what, sum(w.n))
    FROM livewell.warning w
    WHERE w.hour >= date_trunc('hour', p_now, 'UTC') - interval '1 hour'
        AND (w.hour >= date_trunc('hour', p_now, 'UTC') OR w.first_at > p_now - interval '1 hour')
    GROUP BY w.place, w.what
    HAVING sum(w.n) >= 5;
END
$$;
COMMENT ON FUNCTION livewell.rule_warning_rate IS
    'Warnings that were counted five times or more within an hour.';
REVOKE ALL ON FUNCTION livewell.rule_warning_rate FROM PUBLIC;

-- ── operations/functions/rules/rule_watched_not_fresh.sql ──
-- Rule watched_not_fresh (P1): of what people watch from an upstream, more than half is not fresh,
-- and was not at every look for 5 minutes.
--
-- Called by: evaluate_rule. Index: viewer_session_seen_idx, subscription_pkey, ledger_pkey.
-- By viewers: a key that a hundred people watch counts a hundred times, so a dead key that few
-- watch among thousands raises nothing.
-- Not fresh: stale, failing, lagging, or no value yet. That the upstream knows no such key is an
-- answer, and unverifiable is as fresh as can be told.
-- By upstream: one that is silent is named, and a healthy one beside it is not. What is paused is
-- not fresh because somebody said so.
-- Bounded:    the 200 sessions that were seen last (each is seen every minute, so that is a fair
--             sample) and 200 keys of each: of these looks 500 are judged, of each upstream in
--             turn, so that a small one beside a large one is seen whole. Within an upstream a hash
--             chooses, so that each look has the same chance: with 500 of them a share of one half
--             is off by 2 %.
--             A verdict takes 10 µs, and several times that on a busy machine: 5,000 of them took
--             442 ms there.
CREATE OR REPLACE FUNCTION livewell.rule_watched_not_fresh(p_now timestamptz)
RETURNS TABLE (subject text, summary text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_upstreams text[];
    v_shares    numeric[];
BEGIN
    WITH types AS MATERIALIZED (
        -- Without what makes a type's row large: it is handed to a function for each key.
        SELECT t.name, t.upstream,
            jsonb_populate_record(t, '{"definition": {}, "columns": []}') AS slim
        FROM livewell.data_type t
        JOIN livewell.upstream u ON u.name = t.upstream
        WHERE t.paused_at IS NULL AND u.paused_at IS NULL
    ),
    looks AS MATERIALIZED (
        SELECT s.data_type, s.key, hashtextextended(s.key, uuid_hash(live.id)) AS lot
        FROM (
            SELECT v.id FROM livewell.viewer_session v
            WHERE v.seen_at > p_now - interval '5 minutes'
            ORDER BY v.seen_at DESC LIMIT 200
        ) live
        CROSS JOIN LATERAL (
            SELECT b.data_type, b.key FROM livewell.subscription b
            WHERE b.session_id = live.id
            LIMIT 200
        ) s
    ),
    watched AS MATERIALIZED (
        SELECT o.data_type, o.key, count(*) AS viewers
        FROM (
            SELECT k.data_type, k.key
            FROM looks k
            JOIN types t ON t.name = k.data_type
            ORDER BY row_number() OVER (PARTITION BY t.upstream ORDER BY k.lot) LIMIT 500
        ) o
        GROUP BY o.data_type, o.key
    ),
    judged AS MATERIALIZED (
        SELECT t.upstream, w.viewers, l.missing AS absent,
            livewell.verdict(t.slim, l, p_now) AS verdict
        FROM watched w
        JOIN types t ON t.name = w.data_type
        JOIN livewell.ledger l ON l.data_type = w.data_type AND l.key = w.key
    )
    SELECT array_agg(s.upstream), array_agg(s.share) INTO v_upstreams, v_shares
    FROM (
        SELECT j.upstream,
            sum(j.viewers) FILTER (
                WHERE j.verdict NOT IN ('fresh', 'unverifiable')
                    AND NOT (j.absent AND j.verdict = 'missing')
            ) / sum(j.viewers) AS share
        FROM judged j
        GROUP BY j.upstream
    ) s
    WHERE s.share > 0.5;
    RETURN QUERY
    SELECT l.subject,
        format(
            '%s: %s %% of what is watched, by viewers, is not fresh, and has not been for %s min',
            l.subject, round(100 * v_shares[array_position(v_upstreams, l.subject)]),
            floor(extract(epoch FROM p_now - l.since) / 60)
        )
    FROM livewell.lasting(
        'watched_not_fresh', coalesce(v_upstreams, '{}'), interval '5 minutes', p_now
    ) l;
END
$$;
COMMENT ON FUNCTION livewell.rule_watched_not_fresh IS
    'Upstreams of which more than half of what is watched, by viewers, has not been fresh for 5 '
    'minutes.';
REVOKE ALL ON FUNCTION livewell.rule_watched_not_fresh FROM PUBLIC;

-- ── operations/functions/rules/rules_operations.sql ──
-- The rules that watch the system itself: what each looks for, how urgent it is, and how long its
-- condition must be gone before it may fire again (R23).
--
-- Called by: alert_rules. The condition itself is the function rule_<name>(now);
-- docs/operations/alerts/<name>.md says what to do.
CREATE OR REPLACE FUNCTION livewell.rules_operations()
RETURNS TABLE (name text, level text, hysteresis interval, meaning text)
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN QUERY VALUES
        ('background_waiting',    'P2', interval '1 hour',
         'a background job has been waiting for more than an hour'),
        ('breaker_open',          'P1', interval '15 minutes',
         'an upstream fails, and its calls are stopped'),
        ('budget_nine_tenths',    'P1', interval '1 hour',
         'more than 90 % of a budget is used'),
        ('budget_reached',        'P0', interval '1 hour',
         'a budget is used up, and its calls are stopped'),
        ('budget_three_quarters', 'P2', interval '1 hour',
         'more than 75 % of a budget is used'),
        ('calls_near_limit',      'P2', interval '15 minutes',
         'calls have been at more than 5/6 of their limit for 15 minutes, and '
         'more work waits'),
        ('credential_missing',    'P1', interval '15 minutes',
         'workers work the queues of an upstream, and none has a credential of it'),
        ('key_overdue',           'P1', interval '15 minutes',
         'a watched key has been due for more than five times its time to live'),
        ('queue_deep',            'P1', interval '30 minutes',
         'more than 1,000 jobs and due keys have been waiting for a queue for 30 minutes'),
        ('queue_stalled',         'P1', interval '10 minutes',
         'nothing was completed in a queue for 10 minutes, and work waits'),
        ('schedule_late',         'P0', interval '5 minutes',
         'a schedule has not run when it should have'),
        ('singleton_held',        'P0', interval '10 minutes',
         'one run has held a singleton for more than 10 minutes'),
        ('size_underestimated',   'P2', interval '1 day',
         'answers of a type are more than twice as large as its file says'),
        ('type_silent',           'P1', interval '1 hour',
         'a type that is watched has not been refreshed for 24 hours'),
        ('upstream_silent',       'P1', interval '15 minutes',
         'work waits for an upstream, and no call of it was allowed for 15 minutes'),
        ('warning_rate',          'P2', interval '2 hours',
         'the same failure was tolerated five times within an hour'),
        ('watched_not_fresh',     'P1', interval '15 minutes',
         'more than half of what is watched from an upstream, by viewers, has '
         'not been fresh for 5 minutes');
END
$$;
COMMENT ON FUNCTION livewell.rules_operations IS
    'The alert rules that watch the system itself, with their levels.';
REVOKE ALL ON FUNCTION livewell.rules_operations FROM PUBLIC;

-- ── operations/functions/state/list_warnings.sql ──
-- Failures that were tolerated, by place and kind: how often in the last hour and in so many hours,
-- and the latest example.
--
-- Called by: CLI `warnings list`, GET /v1/warnings.
-- Index:     warning_hour_idx. Bounded: about 1,000 rows an hour are kept, and 720 hours are asked
--            for at most.
-- type: the type a warning is about, where it names one. p_after: the place and kind that the page
-- before ended with, joined by a line feed, which neither contains.
CREATE OR REPLACE FUNCTION livewell.list_warnings(
    p_hours integer, p_type text, p_after text, p_limit integer
)
RETURNS TABLE (
    place text, what text, type text, last_hour bigint, n bigint, per_hour float8,
    first_at timestamptz, last_at timestamptz, sample text, cursor text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
    v_hours integer := greatest(least(p_hours, 720), 1);
BEGIN
    RETURN QUERY
    SELECT o.*
    FROM (
        SELECT w.place, w.what, t.name,
            coalesce(sum(w.n) FILTER (WHERE w.hour = date_trunc('hour', v_now, 'UTC')), 0)::bigint,
            sum(w.n)::bigint, sum(w.n)::float8 / v_hours, min(w.first_at), max(w.last_at),
            (array_agg(w.sample ORDER BY w.last_at DESC))[1],
            (w.place || E'\n' || w.what) COLLATE "C" AS cursor
        FROM livewell.warning w
        LEFT JOIN livewell.data_type t ON t.name = split_part(w.what, ': ', 1)
        WHERE w.hour > v_now - make_interval(hours => v_hours)
        GROUP BY w.place, w.what, t.name
    ) o
    WHERE (p_type IS NULL OR o.name = p_type) AND o.cursor > p_after COLLATE "C"
    ORDER BY o.cursor LIMIT least(p_limit, 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_warnings IS 'A page of tolerated failures with their rates.';
REVOKE ALL ON FUNCTION livewell.list_warnings FROM PUBLIC;

-- ── operations/functions/state/system_state.sql ──
-- The whole system in one query (S6): what each package says of itself, by name.
--
-- Called by: `livewell state`, GET /v1/system/state, GET /v1/metrics, `livewell doctor`.
-- Every function livewell.state_<part>() without arguments that gives jsonb is asked, if the caller
-- may; a part that fails says so in its place, and the others are there all the same. Each part
-- says "how" its figures came about: exact, or estimated from a sample whose age it gives.
-- Cost:      1,000,000 live jobs, 10,000,000 rows of history and 300,000 subscriptions: 38 ms when
--            samples are taken, 5 ms while they are kept (bench/operations/state.py).
CREATE OR REPLACE FUNCTION livewell.system_state()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
-- of the login behind a transaction pooler it may be on: 0.9 to 2.5 s instead of 40 ms
SET jit = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_parts     jsonb := '{}';
    v_part      record;
    v_value     jsonb;
BEGIN
    FOR v_part IN
        SELECT p.proname, substr(p.proname, 7) AS name FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'livewell'::regnamespace
            AND p.proname LIKE 'state\_%'
            AND p.pronargs = 0
            AND p.prorettype = 'pg_catalog.jsonb'::regtype
            AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
        ORDER BY p.proname LIMIT 100
    LOOP
        <<asked>>
        BEGIN
            EXECUTE format('SELECT livewell.%I()', v_part.proname) INTO v_value;
        EXCEPTION WHEN OTHERS THEN
            v_value := jsonb_build_object('how', 'failed', 'error', SQLERRM, 'sqlstate', SQLSTATE);
        END asked;
        v_parts := v_parts || jsonb_build_object(v_part.name, v_value);
    END LOOP;
    RETURN jsonb_build_object('at', v_now) || v_parts;
END
$$;
COMMENT ON FUNCTION livewell.system_state IS
    'The state of every part of the system in one document.';
REVOKE ALL ON FUNCTION livewell.system_state FROM PUBLIC;

-- ── operations/grants.sql ──
-- Who may look after the system.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- tables of other packages. Rules read what workers may read; what mends locks and changes what its
-- header says, as an operator, and by hand as a worker's login.
table data_type                     -        -        r        r        r
table singleton                     -        -        rw(expires_at,fence)  -        -
table upstream                      -        -        -        w(paused_at)  -
table warning                       -        -        r        r        r
table worker                        -        -        r        -        -

-- sequences
sequence fence_seq                  -        -        r        -        -

-- functions: mend
function close_breaker              -        -        X        X        -
function probe_breaker              -        -        X        X        -
function resume_upstream            -        -        X        X        -
function take_singleton             -        -        X        X        -

-- functions: rules. They read what workers may read, and move alerts.
function alert_rules                -        -        X        X        X
function budgets_above              -        -        -        X        -
function due_watched                -        -        -        X        -
function evaluate_rule              -        -        -        X        -
function limiter_subject            -        -        -        X        -
function rules_operations           -        -        X        X        X
function rule_background_waiting    -        -        -        X        -
function rule_breaker_open          -        -        -        X        -
function rule_budget_nine_tenths    -        -        -        X        -
function rule_budget_reached        -        -        -        X        -
function rule_budget_three_quarters -        -        -        X        -
function rule_calls_near_limit      -        -        -        X        -
function rule_credential_missing    -        -        -        X        -
function rule_key_overdue           -        -        -        X        -
function rule_queue_deep            -        -        -        X        -
function rule_queue_stalled         -        -        -        X        -
function rule_schedule_late         -        -        -        X        -
function rule_singleton_held        -        -        -        X        -
function rule_size_underestimated   -        -        -        X        -
function rule_type_silent           -        -        -        X        -
function rule_upstream_silent       -        -        -        X        -
function rule_warning_rate          -        -        -        X        -
function rule_watched_not_fresh     -        -        -        X        -

-- functions: state
function list_warnings              -        -        X        X        X
function system_state               -        -        X        X        X

-- functions of other packages
function list_limiters              -        -        -        X        -
$matrix$);

-- ── server/001_tables.sql ──
-- Server: who may come in. Never edited after release; changes are a new numbered file.

-- A secret has at least 160 random bits, so its SHA-256 tells nothing about it and no slow hash is needed.
CREATE TABLE livewell.api_key (
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz,                        -- NULL: never
    revoked_at      timestamptz,
    last_used_at    timestamptz,                        -- moved at most once a minute
    public          boolean     NOT NULL DEFAULT false, -- may live in a web page: its sessions are anonymous viewers
    id              text COLLATE "C" PRIMARY KEY,       -- the part of the key that is no secret
    user_id         text COLLATE "C" NOT NULL,          -- whom row security compares: one key is one user
    kind            text COLLATE "C" NOT NULL,
    name            text        NOT NULL,               -- what people call it
    scopes          text[]      NOT NULL,
    types           text[],                             -- the types it may read; NULL: all
    secret_hash     bytea       NOT NULL,
    CONSTRAINT api_key_id_check CHECK (id ~ '^[A-Za-z0-9]{8,32}$'),
    CONSTRAINT api_key_user_check CHECK (user_id = 'key:' || id),
    CONSTRAINT api_key_kind_check CHECK (kind IN (
        'key',      -- of a machine, until it is revoked or expires
        'link',     -- of a login link: good for one login
        'login'     -- of a person's browser, in its cookie
    )),
    CONSTRAINT api_key_name_check CHECK (char_length(name) BETWEEN 1 AND 100),
    CONSTRAINT api_key_scopes_check CHECK (cardinality(scopes) BETWEEN 1 AND 5 AND scopes <@ ARRAY['view', 'subscribe', 'export', 'operate', 'admin']),
    CONSTRAINT api_key_types_check CHECK (cardinality(types) BETWEEN 1 AND 100),
    CONSTRAINT api_key_public_check CHECK (NOT public OR (kind = 'key' AND scopes <@ ARRAY['view', 'subscribe'])),
    CONSTRAINT api_key_hash_check CHECK (octet_length(secret_hash) = 32),
    CONSTRAINT api_key_expiry_check CHECK (kind = 'key' OR expires_at IS NOT NULL)
);
COMMENT ON TABLE livewell.api_key IS 'API keys, login links and logins of browsers; of a secret only its hash is here.';

-- ── server/002_trust.sql ──
-- 0.6.0: lists of keys have pages.
-- Never edited after release; changes are a new numbered file.

-- It gets a parameter with a default: calls as before still fit, and there must not be two that do. A new database does not have it yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.list_keys(boolean, integer)') IS NOT NULL THEN
        DROP FUNCTION livewell.list_keys(boolean, integer);
    END IF;
END
$drop$;

-- ── server/003_rights.sql ──
-- 0.7.0: a key that is bound to types operates nothing, and how many sessions a public key may have.
-- Never edited after release; changes are a new numbered file.

-- M2: what operators see and do concerns every type. Keys that were made with both lose the scope; those that had no other are revoked. Before the check: it holds for updates of old rows, too,
-- and a row that breaks it could not even be revoked. As whoever migrates: row security shows livewell_owner no rows, see grants.sql.
DO $bound$
DECLARE
    v_owner text := current_user;
BEGIN
    SET LOCAL ROLE NONE;
    UPDATE livewell.api_key SET revoked_at = coalesce(revoked_at, livewell.now()) WHERE types IS NOT NULL AND scopes <@ ARRAY['operate', 'admin'];
    UPDATE livewell.api_key SET scopes = array_remove(array_remove(scopes, 'operate'), 'admin')
    WHERE types IS NOT NULL AND scopes && ARRAY['operate', 'admin'] AND NOT scopes <@ ARRAY['operate', 'admin'];
    EXECUTE format('SET LOCAL ROLE %I', v_owner);
END
$bound$;
ALTER TABLE livewell.api_key ADD CONSTRAINT api_key_bound_check CHECK (types IS NULL OR revoked_at IS NOT NULL OR NOT scopes && ARRAY['operate', 'admin']) NOT VALID;
-- Keys are few.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE livewell.api_key VALIDATE CONSTRAINT api_key_bound_check;

-- R3: how many sessions the strangers of a public key may have at a time; NULL: what the setting public_sessions_max says.
ALTER TABLE livewell.api_key ADD COLUMN sessions_max integer;
ALTER TABLE livewell.api_key ADD CONSTRAINT api_key_sessions_check CHECK (sessions_max IS NULL OR public AND sessions_max BETWEEN 1 AND 1000000) NOT VALID;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE livewell.api_key VALIDATE CONSTRAINT api_key_sessions_check;

-- ── server/functions/create_key.sql ──
-- Make a key of a machine, or a login link. The caller made the id and the secret, and gives only
-- the secret's hash; the same call again changes nothing.
--
-- Called by: `livewell keys`, and a server on the embedded database, as the owner; nobody else may.
CREATE OR REPLACE FUNCTION livewell.create_key(
    p_id text,
    p_hash bytea,
    p_kind text,
    p_name text,
    p_scopes text[],
    p_types text[],
    p_public boolean,
    p_seconds float8
)
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_expires   timestamptz := v_now + p_seconds * interval '1 second';
BEGIN
    -- What has long been of no use is not kept for ever.
    DELETE FROM livewell.api_key k
    WHERE k.kind <> 'key' AND k.expires_at < v_now - interval '30 days';
    INSERT INTO livewell.api_key (
        id, user_id, kind, name, scopes, types, public, secret_hash, created_at, expires_at
    )
    VALUES (
        p_id, 'key:' || p_id, p_kind, p_name, p_scopes, p_types, p_public, p_hash, v_now, v_expires
    )
    ON CONFLICT (id) DO NOTHING;
    RETURN v_expires;
END
$$;
COMMENT ON FUNCTION livewell.create_key IS
    'Makes an API key or a login link from the hash of its secret; answers when it expires.';
REVOKE ALL ON FUNCTION livewell.create_key FROM PUBLIC;

-- ── server/functions/end_login.sql ──
-- A person logs out: their login ends, everywhere. Answers false when there is none of that id, or
-- it is no login.
--
-- Called by: servers, with the id of the login whose secret they have just seen.
-- Index: api_key_pkey.
-- Why SECURITY DEFINER: livewell_api has no table rights; it can end nothing but a login, and row
-- security holds it to the one it was given.
CREATE OR REPLACE FUNCTION livewell.end_login(p_id text)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now pg_catalog.timestamptz := livewell.now();
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    UPDATE livewell.api_key k
    SET revoked_at = coalesce(k.revoked_at, v_now)
    WHERE k.id = p_id AND k.kind = 'login';
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.end_login IS
    'Ends the login of a browser; false when there is none of that id.';
REVOKE ALL ON FUNCTION livewell.end_login FROM PUBLIC;

-- ── server/functions/find_api_key.sql ──
-- The key with this id, if it may be used now: what it may do, the hash to compare its secret with,
-- and how many sessions its strangers may have.
--
-- Called by: servers, at most once a minute per key and process. An unknown, a revoked and an
--            expired id give no row: the same answer. A login link is no key (redeem_link).
-- Index:     api_key_pkey.
-- Why SECURITY DEFINER: livewell_api has no table rights; it acts only on the row of the id it is
-- given.
CREATE OR REPLACE FUNCTION livewell.find_api_key(p_id text)
RETURNS TABLE (
    secret_hash bytea, kind text, scopes text[], types text[], public boolean, seconds_left float8,
    sessions_max integer
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    RETURN QUERY
    SELECT k.secret_hash, k.kind, k.scopes, k.types, k.public,
        extract(epoch FROM k.expires_at - v_now)::pg_catalog.float8, k.sessions_max
    FROM livewell.api_key k
    WHERE k.id = p_id
        AND k.kind <> 'link'
        AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > v_now);
END
$$;
COMMENT ON FUNCTION livewell.find_api_key IS
    'What a key may do, the hash of its secret, and its sessions_max; no row when it is unknown, '
    'revoked or expired.';
REVOKE ALL ON FUNCTION livewell.find_api_key FROM PUBLIC;

-- ── server/functions/find_key.sql ──
-- The key with this id, if it may be used now: what it may do, and the hash to compare its secret
-- with.
--
-- Called by: servers before 0.7.0 (find_api_key has followed), at most once a minute per key and
--            process. An unknown, a revoked and an expired id give no row: the same answer. A login
--            link is no key (redeem_link).
-- Index:     api_key_pkey.
-- Why SECURITY DEFINER: livewell_api has no table rights; it acts only on the row of the id it is
-- given.
CREATE OR REPLACE FUNCTION livewell.find_key(p_id text)
RETURNS TABLE (
    secret_hash bytea, kind text, scopes text[], types text[], public boolean, seconds_left float8
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    RETURN QUERY
    SELECT k.secret_hash, k.kind, k.scopes, k.types, k.public,
        extract(epoch FROM k.expires_at - v_now)::pg_catalog.float8
    FROM livewell.api_key k
    WHERE k.id = p_id
        AND k.kind <> 'link'
        AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > v_now);
END
$$;
COMMENT ON FUNCTION livewell.find_key IS
    'What a key may do, and the hash of its secret; no row when it is unknown, revoked or '
    'expired.';
REVOKE ALL ON FUNCTION livewell.find_key FROM PUBLIC;

-- ── server/functions/limit_key.sql ──
-- Say how many sessions the strangers of a public key may have at a time; NULL: what the setting
-- says. Answers false when there is no public key of that id.
--
-- Called by: `livewell keys create`, as the owner, in the statement that makes the key.
CREATE OR REPLACE FUNCTION livewell.limit_key(p_id text, p_sessions_max integer)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.api_key k SET sessions_max = p_sessions_max WHERE k.id = p_id AND k.public;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.limit_key IS
    'Sets how many sessions a public key may have; false when there is none of that id.';
REVOKE ALL ON FUNCTION livewell.limit_key FROM PUBLIC;

-- ── server/functions/list_keys.sql ──
-- Keys, newest first, one page; without their hashes.
--
-- Called by: `livewell keys list`, as the owner. Login links and logins of browsers only if asked
--            for. p_after: the id that the page before ended with.
CREATE OR REPLACE FUNCTION livewell.list_keys(
    p_all boolean DEFAULT false, p_limit integer DEFAULT 100, p_after text DEFAULT NULL
)
RETURNS TABLE (
    id text, name text, kind text, scopes text[], types text[], public boolean,
    created_at timestamptz, expires_at timestamptz, revoked_at timestamptz,
    last_used_at timestamptz, usable boolean
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := livewell.now();
    v_after timestamptz;
BEGIN
    IF p_after IS NOT NULL THEN
        SELECT k.created_at INTO v_after FROM livewell.api_key k WHERE k.id = p_after;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'after: no key has the id %; begin again without it', left(p_after, 40)
                USING ERRCODE = 'LW003';
        END IF;
    END IF;
    RETURN QUERY
    SELECT k.id, k.name, k.kind, k.scopes, k.types, k.public, k.created_at, k.expires_at,
        k.revoked_at, k.last_used_at,
        k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > v_now)
    FROM livewell.api_key k
    WHERE (p_all OR k.kind = 'key')
        AND (p_after IS NULL OR k.created_at < v_after OR k.created_at = v_after AND k.id > p_after)
    ORDER BY k.created_at DESC, k.id LIMIT least(greatest(p_limit, 1), 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_keys IS
    'API keys with what they may do and when they were used; never a secret.';
REVOKE ALL ON FUNCTION livewell.list_keys FROM PUBLIC;

-- ── server/functions/redeem_link.sql ──
-- A person follows a login link: use it up, and make the login of their browser in its place.
-- Answers whether the link was good.
--
-- Called by: servers. p_hash is of the link's secret, p_login_* are of the login that the caller
--            made; a second use of the link finds it revoked.
-- Comparing hashes by = leaks nothing: who does not know the secret cannot steer its hash.
-- Index: api_key_pkey.
-- Why SECURITY DEFINER: livewell_api has no table rights; it acts only on the link it is given, and
-- makes a login with no more than the link's scopes.
CREATE OR REPLACE FUNCTION livewell.redeem_link(
    p_id text, p_hash bytea, p_login_id text, p_login_hash bytea, p_login_seconds float8
)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now   pg_catalog.timestamptz;
    v_link  livewell.api_key;
BEGIN
    IF p_login_seconds IS NULL OR p_login_seconds NOT BETWEEN 60 AND 2592000 THEN
        RAISE EXCEPTION 'a login lasts 60 seconds to 30 days' USING ERRCODE = 'LW003';
    END IF;
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    SELECT * INTO v_link FROM livewell.api_key k WHERE k.id = p_id AND k.kind = 'link' FOR UPDATE;
    v_now := livewell.now();
    IF NOT FOUND
        OR v_link.secret_hash <> p_hash
        OR v_link.revoked_at IS NOT NULL
        OR v_link.expires_at <= v_now
    THEN
        RETURN false;
    END IF;
    UPDATE livewell.api_key k SET revoked_at = v_now, last_used_at = v_now WHERE k.id = p_id;
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_login_id, true);
    INSERT INTO livewell.api_key (
        id, user_id, kind, "name", scopes, types, secret_hash, created_at, expires_at, last_used_at
    )
    VALUES (
        p_login_id, 'key:' || p_login_id, 'login', v_link."name", v_link.scopes, v_link.types,
        p_login_hash, v_now, v_now + p_login_seconds * interval '1 second', v_now
    );
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.redeem_link IS
    'Uses up a login link and makes the login of a browser; false when the link is not good (any '
    'more).';
REVOKE ALL ON FUNCTION livewell.redeem_link FROM PUBLIC;

-- ── server/functions/revoke_key.sql ──
-- Revoke a key, a link or a login: servers refuse it at once, or when what they remember of it is a
-- minute old. Answers false when there is none of that id.
--
-- Called by: `livewell keys revoke`, as the owner.
CREATE OR REPLACE FUNCTION livewell.revoke_key(p_id text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    UPDATE livewell.api_key k SET revoked_at = coalesce(k.revoked_at, v_now) WHERE k.id = p_id;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.revoke_key IS
    'Revokes an API key, a login link or a login; false when there is none of that id.';
REVOKE ALL ON FUNCTION livewell.revoke_key FROM PUBLIC;

-- ── server/functions/touch_key.sql ──
-- A key was used: remember when, at most once a minute.
--
-- Called by: servers, after the secret was right. Index: api_key_pkey.
-- Why SECURITY DEFINER: livewell_api has no table rights; it acts only on the row of the id it is
-- given.
CREATE OR REPLACE FUNCTION livewell.touch_key(p_id text)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
BEGIN
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_id, true);
    UPDATE livewell.api_key k
    SET last_used_at = v_now
    WHERE k.id = p_id AND (k.last_used_at IS NULL OR k.last_used_at < v_now - interval '1 minute');
END
$$;
COMMENT ON FUNCTION livewell.touch_key IS 'Notes that a key was used, at most once a minute.';
REVOKE ALL ON FUNCTION livewell.touch_key FROM PUBLIC;

-- ── server/grants.sql ──
-- Who may do what with keys.
-- Re-applied when anything in the package changes; left out where roles cannot be created.
-- How to read the matrix: functions/grant_rights.sql of db.
-- Making, listing and revoking keys is the owner's alone: whoever may make a key may do everything
-- a key may.
SELECT livewell.grant_rights($matrix$
object                              api      hub      operate  worker   readonly

-- functions
function end_login                  X        -        -        -        -
function find_api_key               X        -        -        -        -
function find_key                   X        -        -        -        -
function redeem_link                X        -        -        -        -
function touch_key                  X        -        -        -        -
$matrix$);

-- Row security, as in refresh/sql/grants.sql: what runs as the owner sees the one key it
-- was called for.
DO $rows$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_policy p
        WHERE p.polrelid = pg_catalog.to_regclass('livewell.api_key')
    ) THEN
        ALTER TABLE livewell.api_key ENABLE ROW LEVEL SECURITY;
        ALTER TABLE livewell.api_key FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON livewell.api_key TO livewell_owner
            USING (user_id = nullif(current_setting('livewell.user_id', true), ''));
        CREATE POLICY owner_login ON livewell.api_key TO livewell_owner
            USING (current_user <> 'livewell_owner');
    END IF;
END
$rows$;

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
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('db', 1, 'base', 'bf7ff160497109b249227fd6afaeeb409343a85459084f4fa87e9b4e8a4ff76a', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('db', 2, 'state', '6d2a53f2efa7e794d14a89f8e101fbd11fdbef85e5eee6c8a3bfcae50acd0137', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('db', 3, 'trust', '991f2b684ab45a380ebaf6b2a5b5e931f7b54dc77d2744cd2b66d62d25b9806c', '0.7.0');
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'find_sample', '8d3a68971f819e10a7eff31ce255b8f850c5c63cb1174ee795dc604b55bc08ca', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'grant_rights', 'fa5ff04e4ce365079e6a442f03a6b6904698772a26e38073662b0480f67628af', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'keep_sample', 'e9049f5ebad2d71c498324e8fa5d13ccfff115d1091acb9d8ed314be3ffb6dbd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'list_audit', '43f249ade6ef1492f21b3234be4241250262b39e8e951ea2cc4c6329a63e67ab', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'now', 'c0347a14a03777f63b3b62595e7532d37a35238bae8081d27eb9bf601329418a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'prune_audit', '0b8360588bfd658b038e81766b59c78cf91c98d2835f74d2e9be5cee7e427761', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'prune_warnings', 'c656ea20787fad7fde8e3bd5fd7319e5d1ea02e7155db55f78bdfba7265e83c1', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'record_act', '6871912c3a9ee54413fabcf22b7be66e865e4ea1ada83c445052d3cc80654ace', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'redact', 'c78c2ef95c764927467994be6d3b6a741d7bf226f3ed1352e45f90c637410660', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'state_database', '4e8383fad9d85c436a804d5fd9f93046aaddfdc22db05a2a145efaaa745d1b6c', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'table_pages', '7c03ba34c4fab55e9e2fcaa6694c2eb55c79aa1c07dce527902662a85a089928', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('db', 'warn', 'fa0a92360ca4a93c829ff4ba86cc8ebfe9297c1062e0a761ebffe2603796592a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.grant_source (package, checksum) VALUES ('db', 'd137227c4f0be7919fd87225842996714fb2cec7d81fc5075052f774e0967551')
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('limits', 1, 'tables', '7fa084b8624839180fc0123be67c91435ad28bf442d535a3c1e1b99fa6c5dd92', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('limits', 2, 'trust', '0fc83069e83a74a3c6cdfeab03bba44cc6d7b59cea9a3395641b7862030bf1cc', '0.7.0');
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'book_calls', '0a09fbb49179ee04d1298ac4f496d476eefe641cf65528fbdda90f5bbf647a0c', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'book_probe', 'bf0baab9207c2382378b7daff9b71fa7d946ef5454f30f8548c18fd30e840381', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'book_usage', '465a4a5e97660a2414971ff8ce60cec3f2203fb90073afae5588bb16170ad890', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'budget_since', 'cf0e62d03562f450a6627b6786d4f177aa7f06514cc53b49c0eaa7cfa2c40837', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'declare_limiter', '532da45755e9f0fb3ee6d61900f5c9bd9a27c41a929da44b679bd32bdcf54f28', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'end_calls', '734eb1516cce481406594faf8f75efff89afccd356f69941288654396ccde676', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'grant_calls', '7f8b3731862f7d7011df58492dce8ed48942ce7d27f5923aa57052a771a7c6df', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'limiter_budget', '420b51a8a19be5847ca0a615dce330778c1694ba74f0047003c6e835702a96ab', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'limiter_rate', 'e79766c652e77cd0be1309d08b92dc7e212320fb913431a1704b932fcd32cc4d', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'limiter_room', '8686919758811a6981ebc10b328849e9ac58535df507077f7353409d8d1b5d41', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'limiter_trouble', '5804848f6655fcd021f3383f67d1db2d38c91bee02bed304015d6fea118591d7', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'mark_keys', '61be9d92fe9fb4fa965932f4e4ec7c019edba89fa2b5c50fd0d9e4eb6625053c', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'observe_limiter', '21a3624e69428895b56f077324838b1bf60d590c28934fd159f128174d432b93', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'open_breaker', 'c05743209010fc9d5ae4647ae845e39fd76c497c859f40ede6dd24e988c14b28', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'prune_limits', '1919b13edb80b63a6bfb39748fcb94ff42727e5e4b63a8bebaa34034c6febff5', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('limits', 'weigh_failures', '6bdba187b7c973dc28d32fb6fc3394bc99c0ed85e648f538d8b35c6dab8b3e22', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.grant_source (package, checksum) VALUES ('limits', '3a00d08140ad6da942911789fd10ad5bf2da2d1cd9fe7af4bfb6d741bf9dbd9a')
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('queue', 1, 'tables', '85afef0d6519b805072f92a2d722743eb8581b116bd1281569e460b09bd31340', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('queue', 2, 'limits', '691b04d303a3629d7621f139f03fcf0514b5097165e963c29a7fdac9bc27fb0e', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('queue', 3, 'failover', 'aea39547815cf27cdce2caed0e9e4db4c712ef145c17f3c5df308750535f23e7', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('queue', 4, 'trust', '47595793bd26c5e51a041fcda588cc87ebe6684d5ff4db4ed823ef3f4aba6b8a', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('queue', 5, 'claim_steps', 'd6ff9d24ed011b04ab575033dedd0494b44995ad639a4cfc9731e33d03ef8276', '0.7.0');
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'refuse_transition', '85afef0d6519b805072f92a2d722743eb8581b116bd1281569e460b09bd31340', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'refuse_birth', '85afef0d6519b805072f92a2d722743eb8581b116bd1281569e460b09bd31340', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'job_ended', '691b04d303a3629d7621f139f03fcf0514b5097165e963c29a7fdac9bc27fb0e', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'create_batch', 'ce5942d0c9e6c74ce4e8dc195b111b914322dfa27042652626258b9857d6b12a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'end_batches', '9d2f757b5209d1c832c1b951f48dba40fbb380e86068d5c93445d4fbaffe1a54', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'seal_batch', 'a7afebd10985bf7820221683bb974351284c921b22753aa91ba71353b58bb9dd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'show_batch', 'f5b41789f314bcee3fca1899394d979655532045849ee8af4a980f98167aae39', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'claim_jobs', '1e682f6549b42a211f5279770fc2fd3cd08ff3e4e8acfaae802cc40041118ee8', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'claim_limited', '75d67e04cc3de81cc444118d1d0963261fee5cbc504737ab15e602324ce01e39', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'exchange_jobs', 'c73666bb0964a8831ad00895316f68f442a39fa824835f9713753c9879e21514', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'group_has_room', 'c3c92499e7a072c63c04a07d74d0071020b88284942aa8b1f897243bcc96519b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'limited_answer', '3a25b0135e857aa552908d52c1c01060aa4c6f35a7a42c38b4ad7e129abf1e5f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'limited_candidates', '3532ec0c0575b000f4591e665e9c726b8bfdd968804ebaa2531f6e39241b2ad5', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'lock_behind_marks', '34dc861789ef39075a27aedaa0309122e598052a7e42fe72493f80c5a198b0c5', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'lock_limited', '5f48b3e1a79637bcdf6d0963984f8721fbf0a2238c6106ca19a0b781bdfd5ceb', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'lock_suspect', 'ac27663f0b1cfba3ab881c25e882271aeb326e7b20813301a43b844f517c2b67', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'measure_room', 'bd1c0ce8bcbc8fe1c9c1d8c501fcb7aedfb5237a5006f2fe28e6c378ea5edb81', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'pick_limited', 'db263a98faef8487ec71d0db99bc57982b67cc08ef4696e6622ba892dffe1436', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'raise_fences', '87403ca8e105d98b5bb698cabd8859de7d1b8737eee50805e9c629810f0866ac', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'read_candidates', 'c85a18e8c6886cf78db6b388f4052732874d8af24282a64f15601f68d5654430', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'answer_jobs', '09ad8122a673a3b6e861aab021a84f15f7ce366a0927a88909acb28d6ace1a36', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'check_jobs', '06416ba0d9115b558409be52479d455df471d363dbcae6d02f8b9c6f8a97c483', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'declare_queue', '5e51cbf71054a1eb74b25d84d1820361999395a46eaa65304a9aa290b080f693', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'drop_repeated', 'de92c654ff696e174df24d189ccc8308385ae23b093068296285cc084601796f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'enqueue_jobs', 'c0536e77fca76f7b35b17e7ba0282c8a66d7a0561a0b26e1a1558dc3b0c9bbdd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'enqueue_keyed', 'bdcee97a1b20e7c61778a9612aba1b09f316f82f3d7e601d9bc8cfa9642a173a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'enqueue_one', 'b3bb33cedfd7098c69911584950dd59c502d84bc20fbd05d8281af449b5b3d7f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'enqueue_plain', '8af4ae8f7f722d9f7e1a06fcbd0b0d69f854ff9c40877656a5b8d6120aa6f528', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'given_jobs', '471285324874c4cbd581e62ea9f3b8bf63603705a31c95342645390c5182411f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'insert_jobs', 'e11d2eef720b40fbec1dcab743b599e0302c06bfef43bd2b6b18ea9ee0a64da7', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'merge_jobs', 'e1e3d9e5587cc49f2b6b07debc0767f17d60ff9bf53c04829683e287bd734920', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'refuse_job', '7de369437f1d72926c03e255272a79fd9365d62194c6d604de324c51d10b9804', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'reserve_job_ids', 'c9a255580409812a58505fbf578d8e97daa88a0a6c62bfd7be7ba2d554227f87', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'charge_jobs', '9086a24ebf87f8a7b941c83eb9f252971d86c0a7dbe4a9af1a96d788b1707286', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'finish_jobs', 'ac717ca3fb466452634a1d4ee4f9fe7be360433b432daea40b1a161368bee5f9', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'job_ended', '1463fcaa24a692c5ff28b312a82f36966f7fdf58fe4d4558ef2d05e0978c1606', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'release_held', 'cd6fe363d9250150dfc027a4bde78cec8c792e5b6e3ad55744ade394c6d1209d', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'settle_jobs', '121a11b28d5c3a4e3e437e440feff1b130590846f50c8da431cb52dd17204ad2', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'reconcile_jobs', '860a255d521020417e86fa15487f8dc44e7a3b5634c9d5303ec36ed730d7aa24', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'register_worker', '130e8bf84d80c23714ba2cb85a763b8d4d49bdec893836ccb9e9b69c14374f6a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'release_worker', '868cc9232dfc9e52166cb4646baf34681a24853dea300ab49d94a93f498c166c', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'renew_worker', '60be8f94a60cf2b36527afbaf1479d7c2966413c308354a4a4e6b9fed62c7168', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'report_lacks', 'ce44f2b992faa0aec5f867f8252b5d133549b8a758bb21488633ba5830bf540b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'report_progress', '46fa6148f8e30131194ccfffcb2e39882e0b4521c5e1170314e345a044d1dbc0', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'works_queue', 'cd6a14661dfa5c8e803d9fb607a5632b63d9d6bfa4b4fcf0f333b2420086f393', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'cancel_job', 'a48dd32ca614cf13f0e6c5d24acc32af300775e1157af7c19e7ca78fd197731e', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'edit_dead', '41b02cc53f4e426f694fc10ccf170569c6fab3f65e8b82c7276b6ff89d2d1ab0', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'hasten_job', '320c0d88761639b2afa9c0966e5da227a35b6bf035e1aa86c7ff7a8772372da2', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_dead', '837dc7f2f8635db042ab1697cb9544468ff369396a5c2b3015a2f53a526e29ad', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_jobs', 'fcb816a4e3dec5f28e914aee329f01aeecb0fa40e7b56d68d864c54ac13b10c6', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_limiters', '10fbe3d6a7e9930715f8f65302e406e8470383737baf52ef7ab9d4ae95de6451', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_queue_states', 'cffb61318075e1101f8e5819a09f951037ea0df5b868581f4eab0029d472ab9f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_queues', 'c20b8b9a7066da98061f67d80307b5e6241c538cb575e77721b0acff38d099d9', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_worker_states', 'f9191a7a4139febf01eed85f44941240bf6250dccaae8dc10825531e912fc0e2', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'list_workers', 'fa11218919959a9a2a37377fa6ad50513c9d6499991127a7b64e0dc49817ff64', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'pause_queue', 'ca6888ad77df076b9efff6ea6c62657d0dfff875278a33cb252acba2bf606527', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'redrive_dead', 'b90ce094919971a0db234f893c8864ed99f9bed7e613737a87eb0191d371088d', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'sample_queue', '1020df7d011463c33cdaf28eb29876b48ef2049012a8948440e9ea342b8535cd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'show_job', '88d65ee667481ebce66baf27194c6f3b911d5314f28e773c2ac8a3618ce06d09', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'show_progress', '8cd429e111fbd68a498c7f22c55db034379b273191ca4eac70b54ac01762e15e', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'show_traceback', '5797253cdf9258fbb132304b7589b46282ac46bbb267802eea77dda072a8dbef', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'state_limits', 'a31545f59d2f138f0206b44c82d0799c3c76afc7a120388625e3f0fd0b768692', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'state_queue', '1c56f939c8b0fe682441482fadc998dc363299b3e618ecbe13aeb3afad800638', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'book_call', '8cf067840fc0d7675d1a7a26ce4b61ca4671bb9554fecca15749cc1cbc1210f2', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'permit_room', '378ae4d210b19153e8d7f9dcbec550a150b8ab9d73dc850c52446a2f092cd308', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'report_wall', '061086dea70b26693a08d558128b8f5ac22f9c71a1c950ba0e9773e7913f39ed', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'restart_wait', '871efd03a1a4fa9b9cbe6d08b4d6f49cea75dd691638943b8f41ebd254217aff', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'server_started', 'dd3fdd6d34c43ef109b5641436d86e27e5ce8d24e690a8a911cd69767b23aa43', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'take_call', '895353f4d556b6a563dd8f2ae6bb4dfaf4ec01ac70e688f804917d23a336fb5d', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'take_permits', '5c641829f03129613a1f593d9ef71fcc40744344c4c4b4a6a76d71875993c661', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'add_stats', '82f8ae80c519dfa235f8f493e5a8e05eeb086600eed79b60161aa4549dcb3415', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'drop_history_day', 'd069d02e4008452ba1a1580fbfaa050e463dd5dba92f6cf19089c1f3b92d83f6', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'ensure_history_days', '67309141a00039aee21ce883644e53f4f7c0c4626d69ab0ace397d345702e62a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'maintain', '1ff381357145ee5e405e7fa30d68404b87408688a3f3ebd50a0546f47039b30b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'promote_held', 'b1fdeba2941d277af5616b506c1264b9f095b473d19fa2ed63d95f6873f42cf6', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'promote_jobs', '92277a7c4ef7ffb7043ed950e69c1d56d9ee83ad9e8defc6b8f65560b99cf1af', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'prune_queue', '7fed8fb72c4050e5199d0c7b082cef27836fa676491b2aece73d565a6ffd90a8', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'recover_jobs', 'a0b4d20ca3f4caef80b8a1b4f6a3f8dc00fbf007bf95bcdbeeb2fc46d9f19324', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'why_apart', '03cb0538b06e8a98ad456191fd899b62888503b9507e6d352c7861f2c0dd6e50', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'why_ended', '84c996954de28b101f498aa83c972fa81fb6bffec6d93067d617c70a28c38d00', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'why_full', '785ee67ed095d7eb44ec68ec20b15478a60206c77411910e7e08e471ef2ee740', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'why_job', '0da4868b78fd6e7dbe5caf7b2b08e6661d965fba7068920fb57bc226ac7897af', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'why_limited', 'cebab438425ab756bd562beae40290766d4739e6e66f77c01de37a10a509d04f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('queue', 'why_unworked', 'd87f3db66b3449952ad636b442daa5cda358c16bd762a0f728c4035f0f4c4a24', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.grant_source (package, checksum) VALUES ('queue', '641f5c2459969a5a3178e416cd63e14146b08148e6dce833124091fcd316873b')
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('schedule', 1, 'tables', '0925b273582d18c6401a396628331da2dce3ac415410b97c1b9c5fa07390717d', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('schedule', 2, 'schedules', '65218c101a8effa25c04feae051dfc0688c9279ad489bb0799fa698d4a7220cd', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('schedule', 3, 'open_ended', '904bfa27f82b11dc7fe83e2bf6996875f791fb02344f06e7dd09b140bdb7d30c', '0.7.0');
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'awaited_slot', 'b4e6328af7b1fd8d1484248a3a2373c7b8ce9d93fa18039e58e23325ec529e42', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'late_at', '1615025a2af10fd3bfebe3015638473d1a426671fd366bd791a449801a005661', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'late_schedules', '35186a6fffb28114476b8588cbb94999a9150db0f43641b389eb77c2eb036dbd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'list_runs', '03223356449f61433d5f95ec02641a90d7deeb994c1572095a05df0eae3eb8fe', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'list_schedules', '59e6ed6835dca38a64915cfe3bfd0431fe4c88ad507d323dc6573df0f4daf2a7', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'pause_schedule', '218b34a71569414cec3951f6d08213ae67aa436eb5033ce68a7a0fc0c4ede26a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'remove_schedule', '8b7f6cc650be8ac0adb1c4826f8792afa7701d79141b8c90b0a83d341d320559', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'state_schedules', 'b58e9d1f484951befb923166f6c63ff84b8ac6e16c91a7bd5cb4f3d5ecac7e9b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'ask_run', '1e63c850f037f68f69f66331c66560e8b093ea8db4ed1cdc889801b621ed5d6a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'begin_asked_run', '0e46b8da515a97660d6f23c5b7182054a6ef8cc2d68392923b2891e885aea7ad', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'begin_run', '8813947795687054fefb7b7698db9f18817a58519560045fe12951e20bc902a0', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'count_open_run', '288df93d85930b45ad7c381e26a244af21754b31e046cd7dd0e86423948b39fd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'crash_runs', '53a5264621c5f7ad2327b21367e65084dc28c3a2d5b8eb0229e0ceab33a88bec', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'fail_open_run', 'ba30c08cf434c5740f88e76f51766f0e574550633519f8f5c80ec3fc445a9112', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'finish_run', '519a9ab692202675852a10861bad63e3c1c08f3bb5b6d6425e0ebcecbe154925', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'open_run', '4a115ab33421fd1466caf3990162cafde2b6de2989cff5f782dc358e681199f3', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'prune_runs', 'f6d39090d1a634e6415f2b84bbb2f5264073e0949f837d3f6e2b92724343f711', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'renew_run', '893330317b2b59c72dbbff35355c18fb249302c8da0a1c477f1ac934935e5db7', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'skip_slots', '619a6a984885281d0189eb1f195a61ebb4e44565c06a9047d82a9bd176a804e9', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'take_run', '5774f486ee9c31c984c480a74ce077f71ceefa4310ef0a7ffeae061748749426', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'declare_open_schedule', 'b8a3f9c120c4adbfa60a41eb23acfdee8e820a5259bc3970054b33bb61894ead', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'declare_schedule', '2a734009a858ff0d741cba7d2ac9e40639916d862b14d88a18bcd85c3db43230', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'move_schedule', '70912d2ec4c69e709ea099461e7967f45ee7d3b9bbe20a97b250b650002c64d4', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'plan_schedule', 'ae9af77b19f5da55e3aa59140a6a05d61b1a21b22ed213ea233273e814ed2235', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'record_pulse', '504f3d9c8ddc3f6ec30bd94d36ce1d7188b800fbcde511608e51785f2bb71969', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'remove_open_schedule', '459bf7175eda69cd626ef05c3105df0f7114a73ad514b13c9d06e20ceecd8185', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'tick_schedules', '518ee8a1ca75991d2fba31b5cae1a0a6ecb976c533a35541067d58ce56cf92f4', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'acquire_singleton', '759d6826ea06b611074f846eaa1569f33d2806e783b2db550ac276e42901b6ac', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'hold_singleton', '1074b2778a74cb0ce08c23ddbe641ffc4f3c987407b6e4951b46cf4c423fa585', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'release_singleton', 'fc05e96de0a6941f03dee2cf620f3d211fcb20a72f0fcb0f688f9ae91ce74dc5', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('schedule', 'state_leases', 'fab25ed5de356f245df96486169a84800650a5282dbea319f7bedfc21e76b2a2', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.grant_source (package, checksum) VALUES ('schedule', 'f86a0a1e5c4841823515a72417c728efde3f62fddd52d5ab11d882dd1bd58fc6')
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('refresh', 1, 'tables', '2026e49c29bfcd4479313cc7cfb448740296e92c44c20745f2f065950a54296b', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('refresh', 2, 'trust', '007af4bb920827334dd13f94fed8a0a584335aab064985109dca9b6b11de1d9b', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('refresh', 3, 'rights', '16e0a46a6d7bac7eb499e345299f96506961ecbc4aa29db6c02cc3f4a323e0d3', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('refresh', 4, 'walks', '0183af6922d398f39d67ce2822cb4f4c1e976256250c400f73d63b4b4641a12e', '0.7.0');
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'begin_walk', 'ae3571e3397bb57ac950b3beefae61f65192f5509006fb92b9873c3c7278e94c', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'choose_refreshes', 'ecff6ee1ee1823df9521990a6f0fb316bcae3f4b96da30e7477fa31ed665fdc1', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'classify_keys', '02218cdae06a64a7f5be18dfe00d19dcf86df2e43f8e097f440ac462b0be690b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'credential_room', 'a6dda422b651887bde0743576c18532c7f67947267923a47fe986f64f4426317', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'demand_refresh', 'f8d2ed31d4a3bdd2ffbcf8b2f51c09bbee65a4ae9a3e650aff91f06cde72e026', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'dispatch_due', '74de7c8a400ca91b13c62e4f0185e55f76bc73a81104e05097129e83b8411966', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'dispatch_room', 'd6449f85c3dc37133de6c525f7aa57672889715cbd9fe96b0c1a3c14bf4ce3ee', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'dispatch_scheduled', '420257c77c719fc29db1a8d2f51157cb542d84cc2e7f72136d2c3fbc21297282', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'drop_refreshes', 'a226c6462d7d5f4fe7b81a06156902dba0bfa60a59d6a23bc92db738dd1a9f2f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'due_candidates', '916394b2b551f7aad2e8a3a22fff55ea56d06a61c504f6ef4ebd1819e5111276', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'due_check_name', 'c5498296a5db17609ac3ace245548cc53ea3ae5fa09e883d2ad0b83b0b9df013', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'enqueue_refreshes', 'd5c1e74dd6778a3fb0ae9dd0dcdbacdc926defb3a87bd5dc3bd9d7f50f23fc33', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'expected_size', 'eb9d6e8ecd24d0b5455b7a8e1a49d7d8e27e7786a42e7b7f4a0b13e62da58dc8', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'fail_dead', '93e457830223c9bb9b6371f434d60265fd3ecb5e3927b67c8bd13e0cafbc17da', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'key_trouble', 'fa82f34f82d37de6ac9236f084fe0e48e0d019819e7c3a8415c104104ecf653a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'list_refresh_queues', 'be3c8e9952b712c3745234dbd3e01bd3b06b44683928032583d63b401e54114f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'list_walks', 'c0ab0d6e6ae16299d6c9c7e2a6e87cb314e9e699f51b2c43578aee492446d63c', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'may_probe', 'dc521eae1dc32eb470602019408ae5b27d70689dfe02987c08ebc4782e75a34d', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'next_due', '3898dec95c93081cc4c37b0f86ec623157e5eef71c0f362a589eb9439d3f7282', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'order_refreshes', 'e095183c47299787f398a4f9714bcf3089b0696f49b9f3e196ff2ac995212dac', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'park_keys', '780aa0d7466d70d4584851a5f1411f644ebc90e138d099dd5dacc27bf5f1347a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'park_unwatched', '40aec702620464d2c1a3fb584dc844d6e41de4d578198d572ca5d2e20e681595', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'plan_cron', '2b4d83018a7da42a1f228b0e74afb5ba9feca2ba05a2a17fc09f05c8fea7df1d', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'queue_chosen', '5b287e297b61bab79c579d062975777533a480db98ca4683de1d6f9fb9bae336', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'ready_keys', 'cbba52b37a0bbc0b739d5d3a89720b83451ebca85c3823785b321cd8ee23bedd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'record_walk', '7dc158be095b7d30e5880cbfd68816e22a21a32f795b3748bacccd9e39cb2ced', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'refresh_jobs', '2671e21c47be06e4297e32dd1df412615bc2f247ac1ec42bf046c49aea873bea', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'refresh_queue', '374f93d75a389eed5e81cf4e720676ab4b3fe6b00712fe98eaf7e49349fdac42', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'refresh_wanted', '3af75ac7bab564223ce25731426bb7cf30a48e7a1b36d57f7abae3f5c296423b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'sample_refresh', '4956e515d90e021e91ed046cb9a79c1f4d65a688ffe94ccedaf9057ef322b6a9', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'show_walk', 'd2ba73491605ef8669cfce78dcb2e9a2aae6e278bfadc52afc0328e4183bcd43', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'sync_walks', '1dfe942c19cd98d7db2274e72848012a539e25b63a0476b7df44224a944cfa72', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'walk_held', 'ba743863a7567f52de2f88868f606ff1f2e5da0438e711b1bbed1a1eac0fbd16', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'plan_groups', '664e01fc26008a7a1d9995957b846191b362f67632656e0b2f7eb7279a5af621', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'plan_state', 'b3778c92db8b51181b651c94dcfcad0e47995ce542531bc8ed6af2319ba83225', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'plan_types', '45c91a0f3af401860ad926267331c43a15eb1abfe71e93b6f28f5b2a32dc8f94', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'plan_upstreams', 'f01158ec1b10b3bc028c0d5a066a6eb1d5190437dc1fdbed01df950d5ec1b3af', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'prune_refresh', '8c29f6e0d7acfe42dc96deaa42f02b2ced23c7f0065082f9974971fdc041323c', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'state_refresh', '06921258f47bece8dec0c0a914c8cbfe7b23ce861683ea17f2da96fa250923fd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'why_key', 'dafe24ca82a78a1e603c5a38b988e04d6b48417fe0b911dcddb3c093888251c2', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'why_refresh', '7443af2d05d37de6143e15f6c57d9da222cd90af1df78bf7f6aff44c4db234ad', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'changed_since', 'fa0ef520d5a55d492c1882b0694e1098800d66bb70c10c7858b669c2835113a8', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'read_readings', '2357e19396758582285c7c011f27259c71689ba674c5c28a1b0319af15e62008', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'read_values', '0c398a4428ef861e9ec014b2f8fd9cb41afa7e2b69ffcd3b88da5079a07f67c5', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'verdict_turns_at', 'f190912b2f0dc379b5f4649bce066cdbfcab5d8ad7d151b173cb06ac50ca0d59', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'is_stale', '49f575f2d1fc2225af82bfb2cbc4e2c99fdf39451d2b7ebaffb2e4ad0e0c480c', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'judge_by_type', 'befbfdb1e9a0198dd4876511f373e3b7f3a4488428a93a7407bb42c01056765c', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'judge_keys', 'a927ee22f87e048d5b58e04a45f9b3f8cd2bd98b1fe51a4f22d437d725a1fea7', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'read_key', '1f0be04c0019a25a1d1aad1da42f36e1f9e17622c9387f024c9f1e3bf6ff9360', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'read_throttle', '8cd40fd381c7ac370303190fed09043530be8546467f47fe6ebb2f33c4964dae', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'read_through', 'd1ad1c3e306cae13edc722f60afa531877d3ff1b044cfdda106fa4697343cfcf', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'refuse_demand', 'f786d704b746f6754089065aaa50ce049244375a6c1a45e927d003f2cca7892e', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'stale_at', '5502fbfe602f9de082097507c7f99ab800d5c91bf6b51e33bf5224df08cf6534', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'verdict', 'db72f84b944f70d36fa500f905aa48be4fed35b5af4ce1682e790b4cdcc4dd2e', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'add_universe', '15a365d8fdf079072d1b97fb4fb26ee3f9bb17ba553ba88a798d8ce5c73b751f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'apply_type', '1aad02755b51105bb2c2276423c1fd6f6e724d84bebceb6f26215e2574052e0f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'apply_upstream', 'ec2115af012452a24e92f9afc09a96849822769c3213951a248f98d39f5e42ac', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'bounds_statement', 'c0db71e95d8e1b6f6b32f54849793f251c8807b94c9d4ceccba1cf091732b188', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'bounds_widened', 'dc89d7fb826cdd6f60ef74980d26aff105d3eb8c596d3051ec823eea190856df', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'change_type', '5461639cc3c49d7bbe9f268007d4c46ca2613b4e0ba7ab40ff20a9155eafcd70', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'clear_ttl', '961c3f75e49912bd8082e525db40e2159ef6d5749efba8e40c8ee2e2002b4490', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'column_bounds', '49c3ffe6f3f692a4ad1d893aa1c055db091ecbf8b7958c7496020e10c4959c48', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'column_type', 'd67781e31caf9dacdbb0a5aa3880a67d732ed428f7b74d73fbf2f814719024d1', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'compare_bounds', 'fe9094fd3aeaef94f44a14f9634f4483a1433054b18e61fd06279e4b786efd83', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'compare_table', '565e8667759c9d3b199c7af52de4ca8713d59322b80dc7af4035d385cb5b926f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'create_statement', '3bda43863c61566eb3a3199bdd6d60dd9e7cc89f540b5855cba31db806dfce66', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'deactivate_universe', 'dd3a253d1d66a5c772773b7b5025e60ab4123c339be8f90590d7d9277a1c1f6e', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'insert_type', '80098266eadbab0df08fa19fcc37400d33b4ae243f250938bf34cd8dfa488f89', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'list_ttls', 'ca866d6aced49b49f05854582d1a964f8351e978a8a97ca032117664f2f07f96', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'list_universe', '9c04832f50b4060bf8be28e89aaf34bd63994350a2e8bb88c7aa0f6044993bbd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'pause_type', '43573b2c8847caaa6ddeff33aecfc5008443267934c03d649ece26ea264b75d6', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'pause_upstream', 'b0b437e3cc4566defac67036e552c1ec062ec5f7d1968a18864762d59bdc10a3', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'redue_type', 'b55fa9dd5fe585e3b85d04b1aaf217995c12bf1a989d625ca2f6c2c431f7aae6', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'registered_type', '7da16f2b22d4c8733473fec36ed654d62fb2d562182c38cff34962a9919a6c34', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'set_ttl', '66ea9d0f943dce12c6edcb394ccad1ec7046c8891ae79834e4c2c65ca36bf741', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'update_type', '38ba219b00896d6896167b1b39de0716d9788a076220c6a5cb3abf57d307685c', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'change_questions', '1c8b7ef38d873e6457b83b904aa64ae7e91e356a0eb8484131b841ac47f17d11', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'count_refreshes', '47c2cd1889a8450aecdbe33a768d27ca2d0148f5507b1637c010c32267ab3315', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'judge_refresh', '65731feb9f91917333a210b2e72bca6a4ddead5563a68af861f40dbd7579ed1f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'move_ledger', '5dc67101d648cf21a6cd48afaeebc586a4af706a89bdd311258881e4cf623164', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'own_results', '006b61c222fc821ac7b341a48eb4e837ac914cf6d7c361e9ad84364448c6ed28', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'refresh_reasons', 'a45aae8ce4b9a30a2b5cdd7b813d51db2a02816827512139b6f91f7e078590cc', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'settle_refreshes', '47745e7a21446e9dfdedb374dcf6fc62a8f0cae7a10419e3f9af34635dd62294', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'store_refreshes', 'f3f538c9940c0a213cd5c0425a5fdc4ad1326993e3ea2475ef8067a8775acbbc', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'store_values', 'f5eca9457147ef345366f00aaa3d85bcff3901b8e0d34012c0a6654e710cdbc6', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'write_values', '74d895537d84eaf2c35e88e8273647ff233bfb50d501d6eda704b6efca9633df', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'answer_pairs', '41d944c2875b27b7a20c3701e9f5459869f8f79ba1639c260c6725d5b432e69a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'close_session', 'a09809eb7f947509f1e1787b84555f62631b0b48beeabe6ec5c2eb6cb60395e6', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'count_all', '1639f4fc34234e8cfe9a1613fb0da687530cc3770c4412cb58d2b7d6553a7738', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'count_own', 'e7dd652bb816a700b720c1db429c97c80a8bc9d5220c7818200b52ad60ea03bb', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'count_viewers', '1f7cbe7d8c7b81eb9ff480442a5b6fe980413889955e28bf9d3fbca0232971b3', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'free_sessions', '94a2de98e33f53205ccdc624c07c16c107e87af58db92c8a0e82b224f0417e82', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'heartbeat_session', 'fff6f98aedd2015a4b7ed1b1a2972db165bd24f183c984bbf5b38c2ab503911b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'key_fits', 'e3266c516b223b4b573642bb415dd33a12da5d19a772e3c7b2e300ea50baef16', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'keys_of_sessions', '1bb6bd4b8e6aa40a76f8903dd2bda801c299e3e9b21d0f2db08d8eda7c6b2c2e', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'load_sessions', 'c3655af3aa7b90d98a4a9f5f66c3e30929d1e00d01f459a023b68ceef30809ce', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'open_session', '71617b38da0579fb6722bc1660579942367087e19af464c9584521a08d1fd610', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'origin_of', '2bc8a9e0bf352fe059979e325ff73d688f9c1cf965ddfc91763f63bf746aeea0', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'public_key_of', '272f36a72ff206d31f717422e461e63aadef6059b49a109afdacf2044e894387', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'recount_viewers', '2b682287e3a961f87d029a18244d2e0992ad713cf9138aa7a34ed2b9b1135af6', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'session_hash', 'ca20fd5554ce2953ef82975557bda0f23bc32f4e2a3ed2152aa9c3ce0cd53767', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'session_keys', '56ed97a600689f544ebcf7b5c390c754843763b2c631ff6d470b497794fce800', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'session_room', 'e60531669553c88b3bd003b57af6a192cf9bcb9bde5e1df6d605790aa35c3873', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'spend_cold_keys', 'ac7cd54c0bacf2819e58108ecebb5faf8b4ef76c7ea7c2f4988a9554a3e3fe65', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'spend_cold_read', '8adcf294d674134ab4e5bcfc73783b2b76aa249a00605547f3ecb6c96da61122', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'subscribe', '0502b998bb2d68c626f0173260a6a5814d079b805de8fe606f3ce7b56595c35b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'sweep_sessions', '0e5cf16f059923d5d6d845340f63d08283e7f0e9a71406644c7cfeb0409ec4b5', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'take_cold', '96bc8770237d402331e2b0b3339968a6ff26f27e52d43bd635f45b1c7be0c80b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'take_session', 'c0aa3cda868f16b83dc10aa87ffe41b3478205aeee80acd162c6cb87c5362f5e', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'touch_session', '4d3053f07c0c600df2be04e58f42e3b25521e86c89de75e21b5652ca27925778', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'unpark', '168c06e56f97a0ed39277138a03873f30efe71a019f033c9acdf498b15622799', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'unsubscribe', 'ea92b3c7ca8b77fbbd36fe7fdf800a1b904dd77fab1b3c5b011fcac0556dbc39', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'viewers_of', '43ccd41f9c356f62e31fdccf47c2a82aa0c9bf1559a22414c9a1f99f7f54fbdc', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('refresh', 'watched_keys', '8a4d50bcb327c202f72d47b5eb911a01ae9de9584edd8f62de85d7eefb8418c0', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.grant_source (package, checksum) VALUES ('refresh', '23526160b8a97a730858f81da60b30b2c69968b8844172e231c2fa75a2b35894')
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('alerts', 1, 'tables', '0aa4fd4764d64f71bffd42702f92d72ce04f3f143ee150ca69794e72759b4ffd', '0.7.0');
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'begin_attempt', '4448fac8f930a1f64997686aa76eb3a731a13a0a7213e12678387503bbb96b5a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'declare_channels', '9f0292a0ce80511e8421c81569e4dd06641db8396cd8c4156e8c5ec1593b600b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'enable_channel', '98aedc72ed11c97177cf151a0530429ad6db6e65282737125ff591f5c86e3c14', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'expire_attempts', '07e7c0b643d7df3784f48614f9028f6a5b81c22418a747df17d23e31657b763f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'lasting', 'b4dfe9cf822d322fdcf6603f08fd4f7cf4ca48ddaa12d6ddd38a09940ecf8bcd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'list_alerts', '2b2f3744f9b19ab071b85b85878859f6648b39a25ce17c7d52a4b84fcf8e3b3f', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'list_attempts', '443d4db9dd6b7e8f677bd24d09d451a5e5265eba951104cdd5b855ed23f67dd3', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'observe_alerts', 'e16a9f0de315e26e1bfa59723c35391eb478eac211007e2c35b7f984bf806255', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'prune_alerts', '6339f0ff9f743e59f1b31bcc4cd56fdc2ec043ecfda6f2c82ec576017b78f122', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'settle_attempt', 'd8f86a43796e08339a5300e247da817899b5fb9adc8b2c1fa9ba4a674d358609', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('alerts', 'state_alerts', '2f6358d075e3cac3f84812475e5418cca6658e4380659129cc8ef6b5caac5f3d', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.grant_source (package, checksum) VALUES ('alerts', '33e0da5528991247cd8497ab0e5fb70f06dc8215efb272a732e41a7a659eaf1f')
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'close_breaker', 'f3ec2b1c0b92ea44a416870817436d319234e9b39e1d460f15babc2a2859b993', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'probe_breaker', 'bc2e57f84f054cbe6ab07095ec0306d91d787620cbc36ac3d1a8a6786610ab04', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'resume_upstream', 'b30385f669f206c321bc681f867d57fb4ba1caf2fefe90800620017eae905ed5', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'take_singleton', '1c1e8a229a6c6463dcef2cadde4f674485e3255ad012afb439e7c831769ed197', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'alert_rules', '2641caf24f89a3502b5645aedb88fcfc18cd1039a5dd33f05e934ed129de5f0b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'budgets_above', '74cd214f9ee6e63f3a7438196da784e1f289ee0d8930432f5dcf6bed4766cde0', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'due_watched', 'fbb6316bb8f908fdb69174b5d58814019a199212f6599f8f6a8d701ed170a136', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'evaluate_rule', '47e42d5c4a1f793e8e5156748f43a852a3f52e442c3143a96abc792bbfc58aab', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'limiter_subject', '5c524af5e426ff6e5095aa13181b4bc38439ec5febae1bdcd5da9476675e6df5', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_background_waiting', '8ebc069e88cb2c37082cc869636c7ba0b15f4183ce5b03659fd3907e5e48dc04', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_breaker_open', '434734b0fb794b4f462de4f224f9404c1d4aa3fe356987f24d82e96d8e186b68', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_budget_nine_tenths', '8e6d332a74962818beec22bc207a6f710331009df51f52248fae1b8cb7772886', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_budget_reached', 'c93d72c9301147e371e003b52ca4b21dda1922d5218fa7debc20dc4dc2f347dc', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_budget_three_quarters', 'd873db88fb6b9d1c3cc594ea6b9853dbd79badd8cfeb0c11c4a2394ac4a15402', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_calls_near_limit', '9c1a7df758ec9528106c23fb7f7fc611ca1e5e7704636372080a05e1d04668af', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_credential_missing', '543a414c477fa7d48764618204f6c68f9d7ed6b02ea256a9ea43a07ec33a69ee', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_key_overdue', '843bead6b6e09b4e76019e7eb78292f196639729a80db1705c20a15e5ea9bfdd', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_queue_deep', '89ce226ffcef81e6f2029e15317308edca5b35da06b1d1b029d11a25515de40b', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_queue_stalled', '4c3eaa6c2574b0d8b47c398e3eb1b1f077726fe9c41bf06f22379b59c4eaeb82', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_schedule_late', '0ddb602715c4ba851d15a3574b92e98d3050385a7e01b2170c390da88d7bb623', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_singleton_held', '7dc099f28f37d920c4a9b07cdd61e85135a22f34655a510609b4088a07a29245', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_size_underestimated', 'e93927afb958e24ea291d4d2495d60b0d8aae86db3b03be44ea22fbf4c9dc9ae', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_type_silent', '68a9a739c5496fdc5217b2f27bb4279688cbb0231eefbb9038f2631d2ae0fc15', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_upstream_silent', 'f6691db0cd8c13020e55e6aff557eef7697850e70d95e4bc23e8485545fcedc1', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_warning_rate', '0869619ca4acef73ea0e09a9a05662f7ee259bd28aa0ef9c2cf30f373548219a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rule_watched_not_fresh', '2f6871447105bcea96be6d04feeee97171d4ef3aa6bdee52720bdeeef74899cf', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'rules_operations', '11136d6e1759ec9224dc81128d77d4d7d8b9478b9deb114676eefcbe47498606', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'list_warnings', '52762a676eabe6ba1efa00032297afdf18940c026eab9a41bb1f45a552aa3a79', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('operations', 'system_state', '1299b1438720870e7295de611df3cac5a24f5c186c26e68cebdced621fe0a8e2', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.grant_source (package, checksum) VALUES ('operations', 'f808d2f14b9f0ea93ccb34a8b86378a1cda6fef1b14e3a563b34cd54dc5ae73b')
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('server', 1, 'tables', '5f5dd006aeb1e71b80ed52cbc27f41356a55302d7253333188b25cda032d9687', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('server', 2, 'trust', '27bc59e61a768e287707b587753ef6ca69cfaccda5f42eccab9c7e72313b5d36', '0.7.0');
INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ('server', 3, 'rights', 'eb56aa13cfa880313367c55bd7d5f11f8b0facb5bb7cd43e36097fa1e1ddd3d9', '0.7.0');
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('server', 'create_key', 'aee255f76fc4e26c1204084b670704007064f4c3be1780e305abe8bd4eb0eacc', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('server', 'end_login', '8541bddfd627d189c41ce0417ede0267e07806cba5494de3a99873ba64b25112', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('server', 'find_api_key', '4f98b4e3619c7484ee918de54907f27b9ec3de8310fc6d4413892528712a9a83', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('server', 'find_key', '7a8b467841dfc92cc877c85e82549efc0bf72a29c2d779d0af8f1435ab081f8a', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('server', 'limit_key', '50cf3a32b21e2aed25bf9f5203d46f7bb7b3b6c1d399caf7d17f1b956f0d3d78', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('server', 'list_keys', '2641928512122ed79679b3e4a37b1f1b6a88efc5481b1a81374f0171a8340165', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('server', 'redeem_link', 'd3483f30e342711fd6d9be9412f49510a5418aa20cc9c1c4d3db3b38f0f2e3d4', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('server', 'revoke_key', '08a1eb09257930fd2108e37e6d2b16676f60b937e59e7d4b95ad5f8a2c28a6a1', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ('server', 'touch_key', 'cc3f5e381ea430973e189b951fd3d329794fdc235129795e1bf0e09df9dafb60', '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
INSERT INTO livewell.grant_source (package, checksum) VALUES ('server', 'c2086d873d90f00790c4404c4747eeec879023229f9bb00bf9739df937024cd8')
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
UPDATE livewell.function_source s SET installed_hash = live.hash FROM (
-- The functions of schema livewell and a hash of each definition; overloads of one name count as
-- one.
SELECT p.proname::text AS name,
    encode(
        sha256(
            convert_to(
                string_agg(
                    pg_catalog.pg_get_functiondef(p.oid),
                    E'\n' ORDER BY pg_catalog.pg_get_function_identity_arguments(p.oid) COLLATE "C"
                ),
                'UTF8'
            )
        ),
        'hex'
    ) AS hash
FROM pg_catalog.pg_proc p
WHERE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell')
    AND p.prokind <> 'a'
GROUP BY p.proname
) AS live WHERE live.name = s.name AND s.installed_hash = '';
DELETE FROM livewell.function_source s
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'livewell' AND p.proname = s.name
);
INSERT INTO livewell.release (version, catalog) SELECT '0.7.0', jsonb_object_agg(live.object, live.definition) FROM (
-- What the tables of schema livewell look like: one row per object, key → definition.
--
-- Partition children are left out: they come and go. So are definitions that print differently from
-- one Postgres to the next (view bodies, and NOT NULL constraints, which are rows of pg_constraint
-- from 18 on; the column says it already).
-- Runs with search_path = '', else names print differently for different users.
WITH table_ AS (
    SELECT c.oid, c.relname, c.relkind, c.reloptions, c.relrowsecurity, c.relforcerowsecurity,
        c.relpersistence
    FROM pg_catalog.pg_class c
    WHERE c.relnamespace = (
        SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell'
    )
        AND c.relkind IN ('r', 'p', 'v', 'm')
        AND NOT c.relispartition
)
SELECT 'table ' || t.relname AS object,
    concat_ws(
        ' ',
        CASE t.relkind
            WHEN 'r' THEN 'table'
            WHEN 'p' THEN 'partitioned table'
            WHEN 'v' THEN 'view'
            ELSE 'materialized view'
        END,
        CASE t.relpersistence WHEN 'u' THEN 'unlogged' END,
        CASE WHEN t.relrowsecurity THEN 'row security' END,
        CASE WHEN t.relforcerowsecurity THEN 'forced' END,
        'with (' || (
            SELECT string_agg(o, ', ' ORDER BY o COLLATE "C") FROM unnest(t.reloptions) AS o
        ) || ')'
    ) AS definition
FROM table_ t
UNION ALL
SELECT 'column ' || t.relname || '.' || a.attname,
    concat_ws(
        ' ', pg_catalog.format_type(a.atttypid, a.atttypmod),
        'collate ' || (
            SELECT co.collname FROM pg_catalog.pg_collation co, pg_catalog.pg_type ty
            WHERE co.oid = a.attcollation
                AND ty.oid = a.atttypid
                AND a.attcollation <> ty.typcollation
        ),
        CASE WHEN a.attnotnull THEN 'not null' END,
        CASE a.attidentity WHEN 'a' THEN 'identity always' WHEN 'd' THEN 'identity by default' END,
        CASE a.attgenerated WHEN '' THEN 'default ' ELSE 'generated ' END
            || pg_catalog.pg_get_expr(d.adbin, d.adrelid)
    )
FROM table_ t
JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
UNION ALL
SELECT 'constraint ' || t.relname || '.' || c.conname, pg_catalog.pg_get_constraintdef(c.oid)
FROM table_ t
JOIN pg_catalog.pg_constraint c ON c.conrelid = t.oid AND c.contype IN ('c', 'f', 'p', 'u', 'x')
UNION ALL
SELECT 'index ' || t.relname || '.' || c.relname,
    pg_catalog.pg_get_indexdef(i.indexrelid) || CASE WHEN i.indisvalid THEN '' ELSE ' (invalid)' END
FROM table_ t
JOIN pg_catalog.pg_index i ON i.indrelid = t.oid
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
UNION ALL
SELECT 'trigger ' || t.relname || '.' || g.tgname,
    pg_catalog.pg_get_triggerdef(g.oid) || CASE g.tgenabled WHEN 'D' THEN ' (disabled)' ELSE '' END
FROM table_ t
JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal
UNION ALL
SELECT 'policy ' || t.relname || '.' || p.polname,
    concat_ws(
        ' ', p.polcmd, CASE WHEN p.polpermissive THEN 'permissive' ELSE 'restrictive' END,
        (
            SELECT string_agg(r.rolname, ', ' ORDER BY r.rolname COLLATE "C")
            FROM pg_catalog.pg_roles r
            WHERE r.oid = ANY (p.polroles)
        ),
        'using ' || pg_catalog.pg_get_expr(p.polqual, p.polrelid),
        'check ' || pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid)
    )
FROM table_ t
JOIN pg_catalog.pg_policy p ON p.polrelid = t.oid
UNION ALL
SELECT 'type ' || ty.typname,
    'enum ' || (
        SELECT string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e
        WHERE e.enumtypid = ty.oid
    )
FROM pg_catalog.pg_type ty
WHERE ty.typnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell')
    AND ty.typtype = 'e'
UNION ALL
SELECT 'sequence ' || c.relname,
    concat_ws(
        ' ', pg_catalog.format_type(s.seqtypid, NULL), 'increment', s.seqincrement, 'cache',
        s.seqcache
    )
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_sequence s ON s.seqrelid = c.oid
WHERE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell')
) AS live
ON CONFLICT (only_row) DO UPDATE SET version = excluded.version, catalog = excluded.catalog, applied_at = excluded.applied_at;
