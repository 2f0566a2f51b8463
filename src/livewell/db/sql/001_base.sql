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
