-- What was last found out about the system by looking at a part of it. Never edited after release; changes are a new numbered file.

CREATE TABLE livewell.state_sample (
    name        text COLLATE "C" PRIMARY KEY,       -- of the part: queue, refresh
    at          timestamptz NOT NULL,
    value       jsonb       NOT NULL,
    CONSTRAINT state_sample_name_check CHECK (name ~ '^[a-z][a-z0-9_]{0,47}$')
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.state_sample IS 'Estimates of what would be dear to count, one row per part of the system, taken anew by whoever asks when they are ten seconds old (S6).';
