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
