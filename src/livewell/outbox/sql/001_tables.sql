-- The outbox: events by day, what is still to be delivered to whom, and who is delivering it.
-- How it works: docs/concepts/outbox.md. Why it is so: docs/adr/0017-outbox-shards.md.
-- Never edited after release; changes are a new numbered file.

-- Without cache, so an event whose transaction began after another's commit has the higher number.
CREATE SEQUENCE livewell.event_number_seq AS bigint CACHE 1;
COMMENT ON SEQUENCE livewell.event_number_seq IS 'Events, in the order of emission.';

CREATE SEQUENCE livewell.event_timeline_seq AS bigint MINVALUE 0 START WITH 0;
COMMENT ON SEQUENCE livewell.event_timeline_seq IS
    'The timeline on which events were numbered last: after a failover it is another one.';

CREATE SEQUENCE livewell.relay_id_seq AS bigint;
COMMENT ON SEQUENCE livewell.relay_id_seq IS 'Relay incarnations.';

CREATE TABLE livewell.event_source (
    one         boolean     NOT NULL DEFAULT true,
    install     text        NOT NULL,       -- the beginning of every event's id: two systems that share a broker differ
    source      text        NOT NULL,       -- CloudEvents: source
    CONSTRAINT event_source_pkey PRIMARY KEY (one),
    CONSTRAINT event_source_one_check CHECK (one),
    CONSTRAINT event_source_install_check CHECK (install ~ '^[0-9a-f]{8}$'),
    CONSTRAINT event_source_source_check CHECK (octet_length(source) BETWEEN 1 AND 200)
);
COMMENT ON TABLE livewell.event_source IS 'Where our events say that they come from: one row.';
INSERT INTO livewell.event_source (install, source)
VALUES (left(md5(random()::text || clock_timestamp()::text), 8), '/livewell');

CREATE TABLE livewell.event_topic (
    name                text COLLATE "C" NOT NULL,
    on_dead             text COLLATE "C" NOT NULL DEFAULT 'continue',
    payload_bytes_max   integer     NOT NULL DEFAULT 262144,
    created_at          timestamptz NOT NULL,
    CONSTRAINT event_topic_pkey PRIMARY KEY (name),
    CONSTRAINT event_topic_name_check CHECK (name ~ '^[A-Za-z][A-Za-z0-9_.-]{0,199}$'),
    CONSTRAINT event_topic_on_dead_check CHECK (on_dead IN ('continue', 'park')),
    CONSTRAINT event_topic_payload_check CHECK (payload_bytes_max BETWEEN 1 AND 1048576)
);
COMMENT ON TABLE livewell.event_topic IS
    'Kinds of events: what may be emitted, and whether a dead letter holds up its key.';

CREATE TABLE livewell.event_sink (
    id                      smallint    NOT NULL GENERATED ALWAYS AS IDENTITY,
    attempts                smallint    NOT NULL DEFAULT 20,
    batch_max               smallint    NOT NULL DEFAULT 1000,
    ordered                 boolean     NOT NULL DEFAULT true,      -- false: no event waits for another of its key
    outside                 boolean     NOT NULL DEFAULT false,     -- true: others claim with outbox_claim, no relay of ours
    backoff_base_seconds    float8      NOT NULL DEFAULT 1,
    backoff_cap_seconds     float8      NOT NULL DEFAULT 300,
    deadline_seconds        float8      NOT NULL DEFAULT 30,
    paused_at               timestamptz,
    created_at              timestamptz NOT NULL,
    declared_at             timestamptz NOT NULL,
    name                    text COLLATE "C" NOT NULL,
    kind                    text COLLATE "C" NOT NULL,
    rate                    text,                                   -- as "100/s": relays keep to it by their shards
    topics                  text[] COLLATE "C" NOT NULL,            -- patterns: a name, orders.*, or *
    CONSTRAINT event_sink_pkey PRIMARY KEY (id),
    CONSTRAINT event_sink_name_key UNIQUE (name),
    CONSTRAINT event_sink_name_check CHECK (name ~ '^[a-z][a-z0-9_-]{0,62}$'),
    CONSTRAINT event_sink_kind_check CHECK (kind ~ '^[a-z][a-z0-9_-]{0,62}$'),
    CONSTRAINT event_sink_attempts_check CHECK (attempts BETWEEN 1 AND 1000),
    CONSTRAINT event_sink_batch_check CHECK (batch_max BETWEEN 1 AND 5000),
    CONSTRAINT event_sink_topics_check CHECK (cardinality(topics) BETWEEN 1 AND 100),
    CONSTRAINT event_sink_backoff_check CHECK (
        backoff_base_seconds >= 0 AND backoff_cap_seconds BETWEEN backoff_base_seconds AND 604800
    ),
    CONSTRAINT event_sink_deadline_check CHECK (deadline_seconds BETWEEN 0.1 AND 600)
);
COMMENT ON TABLE livewell.event_sink IS
    'Where events go, with its policy. Addresses and secrets are in the settings, never here.';

CREATE TABLE livewell.event_route (
    sink    smallint            NOT NULL,
    topic   text COLLATE "C"    NOT NULL,
    CONSTRAINT event_route_pkey PRIMARY KEY (topic, sink)
);
COMMENT ON TABLE livewell.event_route IS
    'Which sinks take which topic: what the patterns of sinks come to.';

CREATE TABLE livewell.event (
    number      bigint              NOT NULL,
    created_at  timestamptz         NOT NULL,
    day         date                NOT NULL,
    topic       text COLLATE "C"    NOT NULL,
    tenant      text COLLATE "C"    NOT NULL,
    key         text COLLATE "C",
    payload     json                NOT NULL,   -- json, not jsonb: it leaves letter by letter as it came
    trace       text,
    CONSTRAINT event_pkey PRIMARY KEY (number, day)
) PARTITION BY RANGE (day);
COMMENT ON TABLE livewell.event IS
    'Events as they were emitted, one partition per UTC day. Never changed; a day leaves by DROP.';

-- One row per event and sink that is still to be delivered. Fixed widths only.
CREATE TABLE livewell.event_delivery (
    number      bigint      NOT NULL,
    key_hash    bigint      NOT NULL,       -- of tenant and key; an event without order: its number
    day         date        NOT NULL,
    tenant_hash integer     NOT NULL,
    sink        smallint    NOT NULL,
    shard       smallint    NOT NULL,
    attempt     smallint    NOT NULL DEFAULT 0,     -- refused or unanswered so often
    lost        smallint    NOT NULL DEFAULT 0,     -- relays that died delivering it
    aside       boolean     NOT NULL DEFAULT false, -- its key is blocked: found through event_block only
    replay      boolean     NOT NULL DEFAULT false,
    CONSTRAINT event_delivery_pkey PRIMARY KEY (number, sink)
) WITH (
    fillfactor = 90,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
COMMENT ON TABLE livewell.event_delivery IS
    'What is still to be delivered. A delivered event leaves this table.';
-- Claims read only this one; it cannot serve a look-up by number.
CREATE INDEX event_delivery_ready_idx ON livewell.event_delivery (sink, shard, tenant_hash, number)
    WHERE NOT aside;
CREATE INDEX event_delivery_aside_idx ON livewell.event_delivery (sink, key_hash, number)
    WHERE aside;

CREATE TYPE livewell.block_state AS ENUM (
    'failed',       -- its first event was not delivered: again at retry_at
    'sending',      -- its first event takes long and is on its way: later ones wait for it
    'parked',       -- its first event is a dead letter of a topic that parks: until redrive or discard
    'draining'      -- what was set aside goes now, in order
);
COMMENT ON TYPE livewell.block_state IS 'Why the events of a key are set aside.';
REVOKE ALL ON TYPE livewell.block_state FROM PUBLIC;

CREATE TABLE livewell.event_block (
    key_hash    bigint      NOT NULL,
    number      bigint      NOT NULL,           -- the event that blocks
    retry_at    timestamptz NOT NULL,           -- infinity: until something else happens
    since       timestamptz NOT NULL,
    sink        smallint    NOT NULL,
    shard       smallint    NOT NULL,
    state       livewell.block_state NOT NULL,
    reason      text,
    CONSTRAINT event_block_pkey PRIMARY KEY (sink, key_hash)
);
COMMENT ON TABLE livewell.event_block IS
    'Keys that wait: their events are set aside, and other keys flow.';
CREATE INDEX event_block_due_idx ON livewell.event_block (sink, retry_at);
CREATE INDEX event_block_shard_idx ON livewell.event_block (sink, shard);

CREATE TABLE livewell.relay (
    id              bigint      NOT NULL,
    started_at      timestamptz NOT NULL,
    renewed_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    steady_since    timestamptz NOT NULL,
    lease           interval    NOT NULL,
    token           uuid,                       -- of a claimer outside, instead of a process of ours
    batch_seconds   float8,                     -- what a batch took lately, at the sink
    turn_tenant     bigint      NOT NULL DEFAULT -9223372036854775808,  -- where the next walk begins
    turn_last       bigint      NOT NULL DEFAULT -9223372036854775808,  -- whose turn was last on it
    mark            bigint      NOT NULL DEFAULT 0,     -- nothing ready has this number or a lower one
    mark_until      timestamptz,                -- when to look from the beginning again; NULL: always
    mark_moved_at   timestamptz,
    drawn_number    bigint      NOT NULL DEFAULT 0,     -- the last number that was drawn, lately
    settled_number  bigint,                             -- all up to it are visible or nothing, once
    settled_xid     xid8,                               -- all transactions before this one have ended
    mark_shards     smallint[],                 -- for which the mark holds
    away_since      timestamptz,
    sink            smallint    NOT NULL,
    turn_place      smallint    NOT NULL DEFAULT 1,
    name            text        NOT NULL,
    version         text        NOT NULL,
    away_reason     text,
    CONSTRAINT relay_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.relay IS
    'One row per relay of one sink: its lease. It holds shards, and what it delivers now.';
CREATE UNIQUE INDEX relay_token_idx ON livewell.relay (sink, token) WHERE token IS NOT NULL;
CREATE INDEX relay_sink_idx ON livewell.relay (sink);

CREATE TABLE livewell.relay_shard (
    relay   bigint,                             -- NULL: free
    sink    smallint    NOT NULL,
    shard   smallint    NOT NULL,
    CONSTRAINT relay_shard_pkey PRIMARY KEY (sink, shard),
    CONSTRAINT relay_shard_check CHECK (shard BETWEEN 0 AND 63)
) WITH (fillfactor = 50);
COMMENT ON TABLE livewell.relay_shard IS
    'Who delivers which part of a sink''s events: a shard belongs to one relay at a time.';

-- The fence: an event may be finished by the relay in whose flight it is, and by nobody else.
-- One row per relay, from its first claim to its end. Each write gives it the next number, and hot
-- statements look for the newest: under the relay's id alone they would find all the versions first that
-- an old snapshot keeps.
CREATE SEQUENCE livewell.event_flight_seq AS bigint;
COMMENT ON SEQUENCE livewell.event_flight_seq IS 'Versions of flights.';

CREATE TABLE livewell.event_flight (
    relay       bigint      NOT NULL,
    flight      bigint      NOT NULL,
    since       timestamptz NOT NULL,
    numbers     bigint[]    NOT NULL,
    CONSTRAINT event_flight_pkey PRIMARY KEY (relay, flight)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.event_flight IS 'What each relay is delivering now.';
-- A thousand numbers fit beside the row when they are compressed, and need no second table.
ALTER TABLE livewell.event_flight ALTER COLUMN numbers SET STORAGE MAIN;

CREATE TABLE livewell.event_sent (
    relay       bigint      NOT NULL,
    block       bigint      NOT NULL,           -- number / 1024
    sent_at     timestamptz NOT NULL,
    day         date        NOT NULL,           -- of the events
    sink        smallint    NOT NULL,
    places      smallint[]  NOT NULL            -- number modulo 1024, of each
) PARTITION BY RANGE (sent_at);
COMMENT ON TABLE livewell.event_sent IS
    'What was delivered when: one row per batch and block of numbers, one partition per UTC day.';
CREATE INDEX event_sent_block_idx ON livewell.event_sent (sink, day, block);

CREATE TABLE livewell.dead_event (
    number      bigint      NOT NULL,
    key_hash    bigint      NOT NULL,
    died_at     timestamptz NOT NULL,
    day         date        NOT NULL,
    tenant_hash integer     NOT NULL,
    sink        smallint    NOT NULL,
    shard       smallint    NOT NULL,
    attempt     smallint    NOT NULL,
    lost        smallint    NOT NULL,
    parks       boolean     NOT NULL,           -- later events of its key wait for it
    replay      boolean     NOT NULL DEFAULT false,     -- it was sent again by a replay
    topic       text COLLATE "C" NOT NULL,
    reason      text COLLATE "C" NOT NULL,
    detail      text,
    CONSTRAINT dead_event_pkey PRIMARY KEY (number, sink),
    CONSTRAINT dead_event_reason_check CHECK (reason IN ('attempts', 'refused', 'lost'))
);
COMMENT ON TABLE livewell.dead_event IS
    'Events that a sink did not take in the end: redriven or discarded by a person.';
CREATE INDEX dead_event_group_idx ON livewell.dead_event (sink, topic, reason, number);
CREATE INDEX dead_event_parks_idx ON livewell.dead_event (sink, key_hash, number) WHERE parks;
CREATE INDEX dead_event_died_idx ON livewell.dead_event (died_at);
CREATE INDEX dead_event_day_idx ON livewell.dead_event (day);

CREATE TABLE livewell.event_stat (
    minute      timestamptz NOT NULL,
    n           bigint      NOT NULL,
    milliseconds bigint     NOT NULL,
    sink        smallint    NOT NULL,
    outcome     text COLLATE "C" NOT NULL,
    CONSTRAINT event_stat_pkey PRIMARY KEY (sink, minute, outcome)
);
COMMENT ON TABLE livewell.event_stat IS
    'Per sink, minute and outcome: how many events, and how long they had waited in all.';

CREATE TYPE livewell.replay_state AS ENUM (
    'running',      -- fed page by page, while little else waits
    'done',
    'cancelled'     -- by a person; what was fed is delivered
);
COMMENT ON TYPE livewell.replay_state IS 'How far a replay is.';
REVOKE ALL ON TYPE livewell.replay_state FROM PUBLIC;

CREATE TABLE livewell.event_replay (
    id              bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    created_at      timestamptz NOT NULL,
    from_at         timestamptz NOT NULL,       -- events that were emitted from here
    to_at           timestamptz NOT NULL,       -- and before this
    fed_at          timestamptz NOT NULL,       -- when it last had its turn: what it may feed counts from here
    ended_at        timestamptz,
    rate            float8      NOT NULL,       -- events a second
    first_number    bigint      NOT NULL,       -- of what is looked at
    last_number     bigint      NOT NULL,
    place           bigint      NOT NULL,       -- the number that was looked at last, of this day
    looked          bigint      NOT NULL DEFAULT 0,
    fed             bigint      NOT NULL DEFAULT 0,
    skipped         bigint      NOT NULL DEFAULT 0,     -- still waiting, or a dead letter
    day             date        NOT NULL,
    sink            smallint    NOT NULL,
    state           livewell.replay_state NOT NULL DEFAULT 'running',
    topic           text COLLATE "C",
    tenant          text COLLATE "C",
    key             text COLLATE "C",
    request_key     text COLLATE "C" NOT NULL,  -- the caller's: repeated, it is the same replay
    CONSTRAINT event_replay_pkey PRIMARY KEY (id),
    CONSTRAINT event_replay_request_key UNIQUE (request_key),
    CONSTRAINT event_replay_rate_check CHECK (rate BETWEEN 0.1 AND 10000),
    CONSTRAINT event_replay_request_check CHECK (octet_length(request_key) BETWEEN 1 AND 200)
);
COMMENT ON TABLE livewell.event_replay IS
    'History that is delivered once more, with the same ids, behind what is new.';
CREATE INDEX event_replay_running_idx ON livewell.event_replay (id) WHERE state = 'running';

CREATE TABLE livewell.inbox (
    received_at timestamptz NOT NULL,
    consumer    text COLLATE "C" NOT NULL,
    event_id    text COLLATE "C" NOT NULL,
    CONSTRAINT inbox_pkey PRIMARY KEY (event_id, consumer, received_at)
) PARTITION BY RANGE (received_at);
COMMENT ON TABLE livewell.inbox IS
    'Events that a consumer here has seen, one partition per UTC day: a second one is skipped.';

CREATE TYPE livewell.relayed_event AS (
    answer      text,           -- event; or before them finished, with how many in number
    number      bigint,
    lane        bigint,
    created_at  timestamptz,
    topic       text,
    key         text,
    tenant      text,
    payload     text,
    trace       text,
    attempt     integer,
    replay      boolean
);
COMMENT ON TYPE livewell.relayed_event IS 'What exchange_events answers, a row each.';
REVOKE ALL ON TYPE livewell.relayed_event FROM PUBLIC;
