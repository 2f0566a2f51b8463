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
