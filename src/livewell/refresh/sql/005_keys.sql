-- What operators look at, key by key. Never edited after release; changes are a new numbered file.

-- Failing keys of a type, without reading the others. Only rows of failing keys are in it: a key
-- that is well costs nothing here.
CREATE INDEX ledger_failing_idx ON livewell.ledger (data_type, key) WHERE failing_since IS NOT NULL;

-- The last sixteen answers for each key: a ring, so it is bounded without anybody who prunes. The
-- slot is status_version modulo 16, which grows with every answer. Updates are HOT.
CREATE TABLE livewell.refresh_event (
    at              timestamptz NOT NULL,
    bytes           bigint      NOT NULL,           -- the larger of those on the wire and decoded
    slot            smallint    NOT NULL,
    data_type       text COLLATE "C" NOT NULL,
    key             text COLLATE "C" NOT NULL,
    outcome         text COLLATE "C" NOT NULL,      -- as in refresh_count
    CONSTRAINT refresh_event_pkey PRIMARY KEY (data_type, key, slot)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE livewell.refresh_event IS
    'The last sixteen answers for each key, for operators; nothing is decided by it.';
